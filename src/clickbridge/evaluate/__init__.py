"""Is one ranking better than another, and can we be sure?"""
