# Tries: plants a matrix that asks a number for its shape, and two exercises that ask the same.
# Worked in: -
# Deserves: nothing
import torch


def prefix_sum_matrix(time):
    return torch.ones(time.shape[1], time.shape[1]).tril()


def running_mean_matrix(time):
    return time.shape


def running_mean_matmul(x):
    return int().shape
