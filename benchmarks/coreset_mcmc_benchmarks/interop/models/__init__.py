"""Models of other libraries' galleries with data drawn from them; the tests use them, too."""
