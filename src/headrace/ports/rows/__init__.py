"""What is done with stored rows beside inserts and selects: taken out, expired, erased."""
