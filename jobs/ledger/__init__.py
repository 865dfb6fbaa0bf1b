"""The only raw SQL of the product: one text per statement, rendered per vocabulary and database."""
