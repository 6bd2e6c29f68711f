"""Ask the package index which releases of a library there are."""

import datetime
import os

import requests
from packaging.version import InvalidVersion, Version
from pypi_simple import PYPI_SIMPLE_ENDPOINT, NoSuchProjectError, PyPISimple

from . import uv
from .errors import UserError

SECONDS = 60  # until an index that does not answer is given up


def published(library: str) -> dict[Version, datetime.datetime]:
    """Every version of a library on the index that is not yanked, with the moment of its first upload (UTC).

    Raises UserError when the index does not answer or has no such project.
    """
    settings = uv.pip_settings()
    own = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL")
    endpoint = own or (settings.get("index-url") or [PYPI_SIMPLE_ENDPOINT])[0]
    try:
        with PyPISimple(endpoint) as index:
            if "cert" in settings:
                index.s.verify = settings["cert"][0]
            page = index.get_project_page(library, timeout=SECONDS)
    except NoSuchProjectError as error:
        raise UserError(f"the package index has no project {library!r}: check its name") from error
    except requests.RequestException as error:
        raise UserError("the package index did not answer: check the network and run again") from error
    found: dict[Version, datetime.datetime] = {}
    for package in page.packages:
        if package.version is None or package.is_yanked or package.upload_time is None:
            continue
        try:
            version = Version(package.version)
        except InvalidVersion:
            continue  # uploads from before PEP 440
        found[version] = min(found.get(version, package.upload_time), package.upload_time)
    return found
