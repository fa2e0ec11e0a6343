"""The CA and the certificate of a folder, renewed while a server uses them."""
