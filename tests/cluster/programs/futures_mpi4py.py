"""A pool of mpi4py.futures: tasks whose results are known. usage: python3 -m mpi4py.futures futures_mpi4py.py"""
from mpi4py.futures import MPIPoolExecutor


def primes_below(limit):
    return sum(all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(2, limit))


if __name__ == "__main__":
    with MPIPoolExecutor() as pool:
        for limit, primes in zip(range(200, 2200, 50), pool.map(primes_below, range(200, 2200, 50))):
            print(f"{primes} primes below {limit}")
