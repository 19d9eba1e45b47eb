-- old
x
