"""Thirty models of the catalogue, fitted by ``cm.fit`` and by the NUTS of their own library, and compared."""
