"""What every room uses: types, errors, precision, trees and files. Nothing here knows what a model or a coreset is."""
