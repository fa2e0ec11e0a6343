"""The pages as a site: `make docs`. On a forge and on the site the same links lead to the same things."""
