import { raw, html as template } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";

/** A piece of HTML, which templates insert as it is. They escape all other texts. */
export type Html = HtmlEscapedString;

type Value = string | number | Html | false | undefined | readonly Value[];

/** A template of HTML. It escapes its values, except those that are {@link Html}. */
export function html(strings: TemplateStringsArray, ...values: Value[]): Html {
  // Hono's templates return a promise only for values that are promises.
  return template(strings, ...values) as Html;
}

/** Marks a text of Weir itself as HTML. Never call it with a text of a log, a configuration or a user. */
export function trusted(text: string): Html {
  return raw(text);
}
