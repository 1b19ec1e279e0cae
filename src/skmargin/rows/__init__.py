"""What a solver sees of the data: kernel rows, Gram matrices and bases; rows in blocks, to be added up."""
