print("locationhub")
