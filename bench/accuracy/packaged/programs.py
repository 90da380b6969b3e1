"""Programs of Debian 12 and their inputs, all written or computed here: small, and the same in every run."""

import itertools
import os
import random
import shutil
import subprocess
from typing import Callable, NamedTuple

from driver.cluster import ROOT, MeasureError


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def files(**texts):
    """A maker of these files, whatever the number of ranks."""
    return lambda folder, _: [write(folder, name, text) for name, text in texts.items()]


def run_serial(folder, *words, env=None):
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
                          env=dict(os.environ, **(env or {})))
    if done.returncode != 0:
        raise MeasureError(f"{' '.join(words)}: exit status {done.returncode}\n{(done.stdout + done.stderr)[-1000:]}")


# -- LAMMPS
LMP = ("lmp", "-in", "in", "-log", "none", "-screen", "none")
LIQUID = """units lj
atom_style atomic
lattice fcc 0.8442
region all block 0 22 0 22 0 22
create_box 1 all
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 4711 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 10 check no
fix 1 all nve
run 170
"""
SALT = """units lj
atom_style charge
lattice sc 0.5
region all block 0 20 0 20 0 20
create_box 2 all
create_atoms 1 box
set type 1 type/subset 2 4000 1234
set type 1 charge 1.0
set type 2 charge -1.0
mass * 1.0
pair_style lj/cut/coul/long 2.5 3.0
pair_coeff * * 1.0 1.0
kspace_style pppm 1.0e-3
minimize 1.0e-4 1.0e-4 20 40
velocity all create 1.0 99 loop geom
fix 1 all nvt temp 1.0 1.0 0.5
timestep 0.002
run 20
"""
GRAINS = """units lj
atom_style sphere
boundary p p f
newton off
comm_modify vel yes
region all block 0 24 0 24 0 30 units box
create_box 1 all
lattice sc 0.8
region heap block 0 24 0 24 0.6 16 units box
create_atoms 1 region heap
set group all diameter 1.0 density 1.0
velocity all create 2.0 31 dist gaussian loop geom
pair_style gran/hooke/history 2000.0 NULL 50.0 NULL 0.5 0
pair_coeff * *
neighbor 0.3 bin
fix 1 all nve/sphere
fix 2 all gravity 1.0 chute 26.0
fix 3 all wall/gran hooke/history 2000.0 NULL 50.0 NULL 0.5 0 zplane 0.0 30.0
timestep 0.002
run 1100
"""

# -- plane waves, Gaussians
SILICON = """&control
 calculation='scf', prefix='silicon', pseudo_dir='.', outdir='scratch', disk_io='none'
/
&system
 ibrav=1, celldm(1)=10.26, nat=8, ntyp=1, ecutwfc=20.0, nosym=.true.
/
&electrons
 conv_thr=1.0d-9
/
ATOMIC_SPECIES
Si 28.086 silicon.UPF
ATOMIC_POSITIONS alat
Si 0.00 0.00 0.00
Si 0.50 0.50 0.00
Si 0.50 0.00 0.50
Si 0.00 0.50 0.50
Si 0.25 0.25 0.26
Si 0.75 0.75 0.25
Si 0.75 0.25 0.75
Si 0.25 0.75 0.75
K_POINTS automatic
2 2 1 0 0 0
"""


def silicon(folder, _):
    """Its pseudopotential is made by ld1.x of the same package."""
    shutil.copy(os.path.join(ROOT, "tests/cluster/programs/quantum_espresso/silicon.atom"), folder)
    run_serial(folder, "ld1.x", "-in", "silicon.atom", env={"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    write(folder, "in", SILICON)


def waters(*edges):
    """Lines "ELEMENT X Y Z" of molecules on a lattice of so many, 3.2 angstroms apart, each turned at random."""
    pick, lines = random.Random(5), []
    for cell in itertools.product(*map(range, edges)):
        x, y, z = (3.2 * (number + 0.5) for number in cell)
        turn = pick.choice(((0, 1, 2), (1, 2, 0), (2, 0, 1)))
        for element, offset in (("O", (0.0, 0.0, 0.0)), ("H", (0.757, 0.586, 0.0)), ("H", (-0.757, 0.586, 0.0))):
            moved = [start + offset[axis] for start, axis in zip((x, y, z), turn)]
            lines.append(f"{element} " + " ".join(f"{number:.4f}" for number in moved))
    return "\n".join(lines)


WATER = f"""&GLOBAL
 PROJECT water
 RUN_TYPE ENERGY
 PRINT_LEVEL LOW
&END GLOBAL
&FORCE_EVAL
 METHOD QUICKSTEP
 &DFT
  BASIS_SET_FILE_NAME /usr/share/cp2k/GTH_BASIS_SETS
  POTENTIAL_FILE_NAME /usr/share/cp2k/GTH_POTENTIALS
  &MGRID
   CUTOFF 200
  &END MGRID
  &SCF
   SCF_GUESS ATOMIC
   EPS_SCF 1.0E-6
   MAX_SCF 12
   &OT
    PRECONDITIONER FULL_SINGLE_INVERSE
   &END OT
  &END SCF
  &XC
   &XC_FUNCTIONAL BLYP
   &END XC_FUNCTIONAL
  &END XC
 &END DFT
 &SUBSYS
  &CELL
   ABC 6.4 6.4 6.4
  &END CELL
  &COORD
{waters(2, 2, 2)}
  &END COORD
  &KIND H
   BASIS_SET DZVP-GTH
   POTENTIAL GTH-BLYP-q1
  &END KIND
  &KIND O
   BASIS_SET DZVP-GTH
   POTENTIAL GTH-BLYP-q6
  &END KIND
 &END SUBSYS
&END FORCE_EVAL
"""
CLUSTER_OF_WATER = f"""start waters
memory total 300 mb
geometry units angstroms noautosym noautoz
{waters(2, 2, 1)}
end
basis spherical noprint
 * library 6-31g*
end
scf
 direct
 thresh 1.0e-5
 noprint "final vectors analysis"
end
task scf energy
"""

# -- finite volumes, elements, differences
FOAM = "FoamFile {{ version 2.0; format ascii; class {kind}; object {name}; }}\n"
CAVITY = {
    "constant/transportProperties": ("dictionary", "nu 0.01;\n"),
    "system/controlDict": ("dictionary", "application icoFoam; startFrom startTime; startTime 0; stopAt endTime; endTime 0.015; deltaT 0.00125;\n"
                           "writeControl timeStep; writeInterval 100000; writeFormat ascii; timeFormat general;\n"
                           "runTimeModifiable false;\n"),
    "system/fvSchemes": ("dictionary", "ddtSchemes { default Euler; }\ngradSchemes { default Gauss linear; }\n"
                         "divSchemes { default none; div(phi,U) Gauss linear; }\nlaplacianSchemes { default Gauss linear orthogonal; }\n"
                         "interpolationSchemes { default linear; }\nsnGradSchemes { default orthogonal; }\n"),
    "system/fvSolution": ("dictionary", "solvers {\n p { solver PCG; preconditioner DIC; tolerance 1e-6; relTol 0.05; }\n"
                          " pFinal { $p; relTol 0; }\n U { solver smoothSolver; smoother symGaussSeidel; tolerance 1e-5; relTol 0; }\n}\n"
                          "PISO { nCorrectors 2; nNonOrthogonalCorrectors 0; pRefCell 0; pRefValue 0; }\n"),
    "system/blockMeshDict": ("dictionary", "scale 0.1;\nvertices ((0 0 0) (1 0 0) (1 1 0) (0 1 0) (0 0 1) (1 0 1) (1 1 1) (0 1 1));\n"
                             "blocks (hex (0 1 2 3 4 5 6 7) (40 40 40) simpleGrading (1 1 1));\nedges ();\n"
                             "boundary (\n lid { type wall; faces ((3 7 6 2)); }\n"
                             " walls { type wall; faces ((0 4 7 3) (2 6 5 1) (1 5 4 0) (0 3 2 1) (4 5 6 7)); }\n);\nmergePatchPairs ();\n"),
    "0/p": ("volScalarField", "dimensions [0 2 -2 0 0 0 0]; internalField uniform 0;\n"
            "boundaryField { lid { type zeroGradient; } walls { type zeroGradient; } }\n"),
    "0/U": ("volVectorField", "dimensions [0 1 -1 0 0 0 0]; internalField uniform (0 0 0);\n"
            "boundaryField { lid { type fixedValue; value uniform (1 0 0); } walls { type noSlip; } }\n"),
}
FOAM_HOME = {"WM_PROJECT_DIR": "/usr/share/openfoam"}


def cavity(folder, ranks):
    """A cube whose lid moves, cut into slices."""
    cut = {"system/decomposeParDict": ("dictionary", f"numberOfSubdomains {ranks}; method simple; "
                                                     f"simpleCoeffs {{ n (1 1 {ranks}); delta 0.001; }}\n")}
    for name, (kind, text) in {**CAVITY, **cut}.items():
        write(folder, name, FOAM.format(kind=kind, name=os.path.basename(name)) + text)
    for tool in ("blockMesh", "decomposePar"):
        run_serial(folder, tool, env=FOAM_HOME)


MEEP = """import meep as mp
mp.verbosity(0)
glass = mp.Medium(index=2.4)
rods = [mp.Cylinder(radius=0.2, center=mp.Vector3(x - 8, y - 6), material=glass) for x in range(17) for y in range(13) if y != 6]
sources = [mp.Source(mp.GaussianSource(0.3, fwidth=0.1), component=mp.Ez, center=mp.Vector3(-8, 0), size=mp.Vector3(0, 1))]
simulation = mp.Simulation(cell_size=mp.Vector3(20, 16), resolution=30, boundary_layers=[mp.PML(1.0)], geometry=rods, sources=sources)
simulation.run(until=25)
"""
BANDS = """(set! num-bands 8)
(set! k-points (list (vector3 0 0.5 0.5) (vector3 0 0.6 0.4)))
(set! geometry-lattice (make lattice (basis-size (sqrt 0.5) (sqrt 0.5) (sqrt 0.5))
  (basis1 0 1 1) (basis2 1 0 1) (basis3 1 1 0)))
(set! geometry (list (make sphere (center 0.125 0.125 0.125) (radius 0.25) (material (make dielectric (epsilon 11.0))))
                     (make sphere (center -0.125 -0.125 -0.125) (radius 0.25) (material (make dielectric (epsilon 11.0))))))
(set! resolution 20)
(set! mesh-size 3)
(run)
"""
LU = """'LU factorization'
'this machine'
'LU.out'  output file
6         to the screen
14        number of problem sizes
800 800 800 800 800 800 800 800 800 800 800 800 800 800  M
800 800 800 800 800 800 800 800 800 800 800 800 800 800  N
1         number of block sizes
32        NB
1         number of right hand sides
1         NRHS
1         number of NBRHS
32        NBRHS
1         number of grids
{rows}    P
{columns} Q
1.0       threshold
F         no estimate of the condition
"""


def lu(folder, ranks):
    rows = max(row for row in range(1, ranks + 1) if ranks % row == 0 and row * row <= ranks)
    write(folder, "LU.dat", LU.format(rows=rows, columns=ranks // rows))


def tree_of_sequences(folder, _):
    """An alignment: descendants of one random sequence, each generation of two children with changes."""
    pick = random.Random(11)
    generation = ["".join(pick.choice("ACGT") for _ in range(200))]
    while len(generation) < 16:
        generation = ["".join(pick.choice("ACGT") if pick.random() < 0.06 else base for base in parent)
                      for parent in generation for _ in range(2)]
    lines = [f"{len(generation)} {len(generation[0])}", *(f"taxon{number:02}  {bases}" for number, bases in enumerate(generation))]
    write(folder, "sequences", "\n".join(lines) + "\n")


class Program(NamedTuple):
    name: str
    what: str
    package: str
    linked: str   # the file that is linked with the MPI library
    words: tuple
    make: Callable  # make(folder, ranks) writes the input
    env: dict = {}


SCALAPACK = "/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests/xdlu"
ALL = {program.name: program for program in (
    Program("liquid", "LAMMPS, Lennard-Jones liquid", "lammps", "lmp", LMP, files(**{"in": LIQUID})),
    Program("salt", "LAMMPS, charges by PPPM", "lammps", "lmp", LMP, files(**{"in": SALT})),
    Program("grains", "LAMMPS, grains on a slope", "lammps", "lmp", LMP, files(**{"in": GRAINS})),
    Program("pw", "Quantum ESPRESSO, silicon", "quantum-espresso", "pw.x", ("pw.x", "-in", "in"), silicon),
    Program("cp2k", "CP2K, water", "cp2k", "cp2k.psmp", ("cp2k.psmp", "-i", "in", "-o", "out"), files(**{"in": WATER})),
    Program("nwchem", "NWChem, Hartree-Fock of four waters", "nwchem-openmpi", "nwchem.openmpi", ("nwchem.openmpi", "in.nw"),
            files(**{"in.nw": CLUSTER_OF_WATER})),
    Program("cavity", "OpenFOAM, icoFoam", "openfoam", "icoFoam", ("icoFoam", "-parallel"), cavity, FOAM_HOME),
    Program("meep", "Meep, rods of glass", "python3-meep-mpi-default python3-matplotlib", "/usr/lib/python3/dist-packages/meep/_meep.so",
            ("/usr/bin/python3", "rods.py"), files(**{"rods.py": MEEP})),
    Program("bands", "MPB, bands of a crystal", "mpb-mpi", "mpb-mpi", ("mpb-mpi", "in.ctl"), files(**{"in.ctl": BANDS})),
    Program("fenicsx", "DOLFINx, Poisson's equation by PETSc", "fenicsx-performance-tests", "dolfinx-scaling-test",
            ("dolfinx-scaling-test", "--problem_type", "poisson", "--scaling_type", "strong", "--ndofs", "80000",
             "-ksp_type", "cg", "-pc_type", "jacobi", "-ksp_rtol", "1e-8"), files()),
    Program("lu", "ScaLAPACK's test of LU", "scalapack-mpi-test", SCALAPACK, (SCALAPACK,), lu),
    Program("phyml", "PhyML, bootstrap", "phyml", "phyml-mpi", ("phyml-mpi", "-i", "sequences", "-b", "8", "--r_seed", "7",
                                                               "--quiet", "--no_memory_check"), tree_of_sequences),
)}


def missing(programs):
    """Packages."""
    return list(dict.fromkeys(package for program in programs for package in program.package.split()
                              if shutil.which(program.linked) is None and not os.path.exists(program.linked)))


def check(programs):
    """All are there, and are linked with Open MPI: else one line with the remedy."""
    if packages := missing(programs):
        raise MeasureError(f"programs are missing: --install, or apt-get install --no-install-recommends {' '.join(packages)}")
    for program in programs:
        path = shutil.which(program.linked) or program.linked
        linked = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
        if "libmpi.so.40" not in linked:
            raise MeasureError(f"{path} is not linked with Open MPI 4 (libmpi.so.40): leave it out with --programs")
