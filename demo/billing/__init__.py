"""Bills invoices with the demonstration's payment service, and writes to who has not paid."""
