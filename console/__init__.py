"""The operators' console: pages, forms and charts over the jobs application."""
