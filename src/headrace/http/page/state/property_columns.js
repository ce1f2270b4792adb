/** The keys of properties that a website's events have, as columns to choose from. Pure. */

/** @typedef {{name: string, type: string, filterable: boolean, aggregatable: boolean, description: string}} Column */
/** @typedef {{key: string, kinds: string[], count: number}} Property */

const ANY_KEY = "properties.KEY";
const MAX_KEY = 256;

/** @template {{tables: {columns: Column[]}[], properties?: Property[]}} T @param {T} schema @returns {T} */
export function withPropertyColumns(schema) {
  const keys = (schema.properties ?? []).filter(({ key }) => key.length >= 1 && key.length <= MAX_KEY);
  const tables = schema.tables.map((table) => ({
    ...table,
    columns: table.columns.flatMap((column) => (column.name === ANY_KEY && keys.length > 0 ? keys.map((one) => propertyColumn(column, one)) : [column])),
  }));
  return { ...schema, tables };
}

/** @param {Column} anyKey @param {Property} property @returns {Column} */
function propertyColumn(anyKey, { key, kinds, count }) {
  return { ...anyKey, name: `properties.${key}`, description: `${kinds.join(", ")} in ${count.toLocaleString("en")} ${count === 1 ? "event" : "events"}` };
}
