//! What the daemon owns, on disk. (The files come with the holder.)
