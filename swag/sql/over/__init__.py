"""Statements with OVER ( … ): standard window functions, read into frozen values (swag/query/over_statement.py)."""
