// The options of the script tag: `data-client-id` is the option `clientId`.

export type Options = DOMStringMap & { clientId?: string; apiUrl?: string };

const script = document.currentScript as HTMLScriptElement;

/** All options of the tag by name, as texts. */
export const options = script.dataset as Options;

/** The address of the script itself, beside which its other files lie. */
export const base = new URL(script.src, location as unknown as URL);

/** The query of all requests. Ids of websites need no encoding. */
export const website = "?client_id=" + options.clientId;
export const server = (options.apiUrl || base.origin).replace(/\/$/, "");

/** Whether a path matches an option: a JSON array of globs, `*` for any text. */
export const matches = (option: string, path: string): boolean | void => {
  try {
    return (JSON.parse(options[option]!) as string[]).some((glob) =>
      path.match(`^${glob.replace(/\W/g, (sign) => (sign === "*" ? ".*" : "\\" + sign))}$`),
    );
  } catch {
    // absent, or no JSON
  }
};
