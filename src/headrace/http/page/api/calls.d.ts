/** The types of calls, from the operations of the OpenAPI document; only type checks read this. */

import type { components, paths } from "openapi";

/** A schema of the document by its name. */
export type Schema<Name extends keyof components["schemas"]> = components["schemas"][Name];
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
export type Path = keyof paths;

/** The operation of a method on a path. */
type Operation<P extends Path, M extends Method> = Lowercase<M> extends keyof paths[P] ? NonNullable<paths[P][Lowercase<M>]> : never;
type Json<Message> = Message extends { content: { "application/json": infer Body } } ? Body : never;
type SuccessOf<O> = O extends { responses: infer Responses } ? Responses extends { 204: unknown } ? null : Json<Responses[keyof Responses & (200 | 201 | 202)]> : never;
type QueryOf<O> = O extends { parameters: { query?: infer Query } } ? Partial<Record<keyof NonNullable<Query>, string | number>> : never;

/** A body as people compose it: names that only the service can check are any text, and whole numbers have any size. */
export type Loose<T> = T extends string ? string : T extends number ? number | bigint : T extends readonly (infer Item)[] ? Loose<Item>[] : T extends object ? { [Name in keyof T]: Loose<T[Name]> } : T;

/** What a call returns. */
export type Answer<P extends Path, M extends Method> = SuccessOf<Operation<P, M>>;

/** What a call sends; `path` has the values of the names in braces. `exact`: the keys of its answer whose whole numbers may be of the type `bigint`. */
export interface Options<P extends Path, M extends Method> {
  path?: Record<string, string>;
  parameters?: { [Name in keyof QueryOf<Operation<P, M>>]?: string | number | undefined };
  body?: Operation<P, M> extends { requestBody: infer Sent } ? Loose<Json<Sent>> : never;
  signal?: AbortSignal | undefined;
  exact?: "all" | readonly string[] | undefined;
}
