"""The cards of a machine, whatever stands behind them: one port, the driver behind it, and one that is made up."""
