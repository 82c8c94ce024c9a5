"""Statements with OVER ( … ) over stored events: all their windows are answered together, then what is made of them."""
