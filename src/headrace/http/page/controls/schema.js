/** What can be chosen in a query: at once what every website has, then the keys of this one. */

import { schema, schemaOf } from "../api/queries.js";
import { page } from "../app_state.js";
import { withPropertyColumns } from "../state/property_columns.js";
import { useLoad } from "./load.js";

/** @typedef {import("../api/queries.js").Schema} Schema */

/** @returns {import("./load.js").Loaded<Schema>} */
export function useSchema() {
  const id = page.value.website;
  const always = useLoad("schema", schema);
  const ofWebsite = useLoad(id && `schema ${id}`, async (signal) => withPropertyColumns(await schemaOf(id, signal)));
  return { ...always, value: ofWebsite.value ?? always.value };
}
