"""Properties of events, done wrong: which value a key has, of which type, in which order."""

from typing import Final

from tests.mutation.wrong_engine import QUERY, WrongEngine

_PROPERTIES: Final = f"{QUERY}/sql/json_properties.py"
_SIMPLE_PROPERTIES: Final = "src/headrace/formats/simple_properties.py"
_ORDER: Final = f"{QUERY}/sql/order_by.py"
_RESULT_VALUES: Final = f"{QUERY}/result_values.py"

WRONG_ENGINES: Final[tuple[WrongEngine, ...]] = (
    # Where a key is found
    WrongEngine(
        "custom",
        "a nested key comes before the very key",
        _PROPERTIES,
        "if(JSONHas({document}, {key_paths[0][0]}), {literal[0]}, {last})",
        "if(JSONHas({document}, {', '.join(key_paths[1])}), {last}, {literal[0]})",
    ),
    WrongEngine(
        "custom",
        "a key whose value is null is looked for further inside",
        _PROPERTIES,
        "if(JSONHas({document}, {key_paths[0][0]}), {literal[0]}, {last})",
        "if({literal[0]} NOT IN ('', 'null'), {literal[0]}, {last})",
    ),
    WrongEngine(
        "custom",
        "objects within arrays are searched",
        _SIMPLE_PROPERTIES,
        """(r"\\\\", ':{"', ',{"', '[{"')""",
        """(r"\\\\", ':{"', ',{"')""",
    ),
    WrongEngine(
        "custom",
        "objects behind the first of an array are searched",
        _SIMPLE_PROPERTIES,
        """(r"\\\\", ':{"', ',{"', '[{"')""",
        """(r"\\\\", ':{"', '[{"')""",
    ),
    WrongEngine(
        "custom",
        "documents with escapes are searched",
        _SIMPLE_PROPERTIES,
        """(r"\\\\", ':{"', ',{"', '[{"')""",
        """(':{"', ',{"', '[{"')""",
    ),
    WrongEngine(
        "custom",
        "keys that begin like a separator are searched for",
        _PROPERTIES,
        "return _FALSE if self.key.startswith(_UNSEARCHABLE_PREFIXES) else IS_SIMPLE_COLUMN",
        "return IS_SIMPLE_COLUMN",
    ),
    # Values
    WrongEngine(
        "custom",
        "null is a value of a property",
        _PROPERTIES,
        "    json IN ('', 'null'), NULL,\n",
        "    json = '', NULL,\n",
    ),
    WrongEngine(
        "custom",
        "numbers are grouped by how they are written",
        _PROPERTIES,
        "({extracted} IN ('true', 'false') OR toUInt32OrZero({extracted}) > 0)",
        "{extracted} NOT IN ('', 'null')",
    ),
    WrongEngine(
        "custom",
        "-0 and 0 of properties are two groups",
        _PROPERTIES,
        "    json = '-0', '0',\n",
        "",
    ),
    WrongEngine(
        "custom",
        "integers past 64 bits are texts",
        _PROPERTIES,
        "untagged = _UNTAGGED.format(again=again, number=_QUOTED_NUMBER, text=_PREFIXED_TEXT)",
        'untagged = "raw" if again else ""',
    ),
    WrongEngine(
        "custom",
        "texts keep the escapes of JSON",
        _PROPERTIES,
        "    startsWith(json, '\"'), concat('\"', JSONExtractString(json), '\"'),\n",
        "",
    ),
    WrongEngine(
        "custom",
        "the text of a property is parsed as JSON",
        _RESULT_VALUES,
        "            return str(value[1:-1])\n",
        "            return str(msgspec.json.decode(value))\n",
    ),
    WrongEngine(
        "custom",
        "numbers of properties are doubles",
        _RESULT_VALUES,
        "msgspec.json.decode(value, type=int | float)",
        "float(value)",
    ),
    # Order
    WrongEngine(
        "custom",
        "numbers of properties are ordered as texts",
        _ORDER,
        '        f"toFloat64OrNull({column}) {direction} NULLS LAST",\n',
        "",
    ),
    WrongEngine(
        "custom",
        "the closing quotation mark decides the order of texts",
        _ORDER,
        'f"if(startsWith({column}, \'\\"\'), left({column}, -1), {column}) {direction} NULLS LAST"',
        'f"{column} {direction} NULLS LAST"',
    ),
    WrongEngine(
        "custom",
        "filled rows order texts of properties by the closing quotation mark",
        _ORDER,
        "value[:-1] if rank == _TEXT_RANK else value\n",
        "value\n",
    ),
    WrongEngine(
        "custom",
        "true and false are ordered as texts",
        _ORDER,
        '{"t": 2, "f": 2, \'"\': 3,',
        '{"t": 3, "f": 3, \'"\': 3,',
    ),
)
