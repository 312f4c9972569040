"""Hands settings.ini to setuptools: edit that file, not this one."""

from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.sdist import sdist

here = Path(__file__).parent
config = ConfigParser(delimiters=["="])
config.read(here / "settings.ini", encoding="utf-8")
cfg = config["DEFAULT"]
lib = cfg["lib_path"]
data_packages = dict(pair.split("=") for pair in cfg["data_packages"].split())
extra = "_requirements"


class SdistWithSettings(sdist):
    """A source archive that holds settings.ini, without which this script cannot run."""

    def make_distribution(self):
        self.filelist.append("settings.ini")
        super().make_distribution()


setup(
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=(here / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    keywords=cfg["keywords"],
    author=cfg["author"],
    author_email=cfg["author_email"],
    license=cfg["license"],
    license_files=["LICENSE", *map(str, sorted(Path("data").glob("*/LICENSE*")))],
    url=cfg["git_url"],
    project_urls={"Documentation": f"{cfg['doc_host']}{cfg['doc_baseurl']}", "Source": cfg["git_url"],
                  "Issues": f"{cfg['git_url']}/issues"},
    classifiers=[line for line in cfg["classifiers"].splitlines() if line],
    python_requires=f">={cfg['min_python']}",
    packages=[*find_packages(include=[lib, f"{lib}.*"], exclude=[f"{lib}.lab"]), *data_packages],
    package_dir=data_packages,
    package_data={lib: ["py.typed"], **{package: ["**/*"] for package in data_packages}},
    install_requires=cfg["requirements"].split(),
    extras_require={key.removesuffix(extra): cfg[key].split() for key in cfg if key.endswith(extra)},
    data_files=[  # the extension of JupyterLab, and what tells its server how citerec's is started
        ("share/jupyter/labextensions/citerec", ["editors/jupyterlab/package.json"]),
        ("share/jupyter/labextensions/citerec/static", ["editors/jupyterlab/static/citerec.js"]),
        ("etc/jupyter/jupyter_server_config.d", ["editors/jupyterlab/citerec.json"]),
    ],
    entry_points={
        "console_scripts": cfg["console_scripts"].split(),
        "nbdev": [f"{lib}={lib}._modidx:d"],
    },
    cmdclass={"sdist": SdistWithSettings},
    zip_safe=False,
)
