"""A zoo: small problems whose full posterior is known exactly, and that are hard for one reason or another each."""
