// The options of the script tag: `data-client-id` is the option `clientId`.

export type Options = DOMStringMap & { clientId?: string; apiUrl?: string };

const script = document.currentScript as HTMLScriptElement;

/** All options of the tag by name, as texts. */
export const options = script.dataset as Options;

/** The address of the script itself, beside which its other files lie. */
export const base = new URL(script.src || location.href);

export const website = encodeURIComponent(options.clientId || "");
export const server = (options.apiUrl || base.origin).replace(/\/$/, "");

/** Whether a feature that is on by default was not switched off. */
export const isOn = (option: string): boolean => options[option] !== "false";

/** Whether a feature that is off by default was switched on. */
export const isAsked = (option: string): boolean => options[option] === "true";

/** The patterns of an option, a JSON array of globs in which `*` stands for any text. */
export const patterns = (option: string): RegExp[] => {
  try {
    return (JSON.parse(options[option]!) as string[]).map(
      (glob) => RegExp(`^${glob.replace(/\W/g, "\\$&").replace(/\\\*/g, ".*")}$`),
    );
  } catch {
    return []; // absent, or no JSON
  }
};
