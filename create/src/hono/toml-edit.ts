import type { Addition } from "./wrangler-additions.ts";

/**
 * Returns texts that may be the TOML document with the addition, the best one first. The caller parses
 * each text and takes the first correct one. No maintained TOML editor for JavaScript keeps comments.
 * This function needs none, because the parser tests each text.
 */
export function* withTomlAddition(text: string, addition: Addition): Generator<string> {
  const { kind, path, value } = addition;
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const name = path.map(keyOf).join(".");
  const head = kind === "append" ? `[[${name}]]` : `[${name}]`;
  const fields = Object.entries(value).map(([key, field]) => `${keyOf(key)} = ${tomlValue(field)}`);
  const separator = text === "" ? "" : text.endsWith("\n") ? eol : eol + eol;
  yield `${text}${separator}${[head, ...fields].join(eol)}${eol}`;
  // The list may be written as `name = [ … ]`. One of the `]` in the text closes this list. The code
  // does not know which, so it tries each.
  const item = `{ ${fields.join(", ")} }`;
  for (let at = text.indexOf("]"); at !== -1; at = text.indexOf("]", at + 1)) {
    const before = text.slice(0, at).trimEnd();
    const between = text.slice(before.length, at);
    const comma = /[[,]$/.test(before) ? "" : ",";
    const indent = between.includes("\n") ? `${eol}  ` : before.endsWith("[") ? "" : " ";
    yield `${before}${comma}${indent}${item}${between}${text.slice(at)}`;
  }
  // An owner may be an inline table, such as `staging = { name = "s" }`. One of the `}` in the text
  // closes this table. The code tries each.
  for (let at = text.indexOf("}"); at !== -1; at = text.indexOf("}", at + 1)) {
    const before = text.slice(0, at).trimEnd();
    const comma = /[{,]$/.test(before) ? "" : ",";
    for (let depth = 1; depth < path.length; depth++) {
      const inner = path.slice(depth).map(keyOf).join(".");
      const inline = kind === "append" ? `[${item}]` : item;
      yield `${before}${comma} ${inner} = ${inline} ${text.slice(at)}`;
    }
  }
}

function keyOf(name: string): string {
  return /^[\w-]+$/.test(name) ? name : JSON.stringify(name);
}

/** Writes texts, booleans and lists of texts. The notation of these is the same as in JSON. */
function tomlValue(value: unknown): string {
  return Array.isArray(value) ? `[${value.map(tomlValue).join(", ")}]` : JSON.stringify(value);
}
