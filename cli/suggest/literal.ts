/** The maximum length of a list or an object on one line, in characters. */
const MAX_LINE = 80;

/** Returns a value of JSON as a literal of TypeScript, in ASCII, so that no text can hide a part of it. */
export function literal(value: unknown, indent = "  "): string {
  if (typeof value !== "object" || value === null) return asciiJson(value);
  const inner = `${indent}  `;
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((each) => literal(each, inner))
    : Object.entries(value).map(([name, each]) => `${nameOf(name)}: ${literal(each, inner)}`);
  const [open, close] = isList ? ["[", "]"] : ["{", "}"];
  if (parts.length === 0) return open + close;
  const space = isList ? "" : " ";
  const line = `${open}${space}${parts.join(", ")}${space}${close}`;
  if (line.length <= MAX_LINE && !line.includes("\n")) return line;
  return [open, ...parts.map((part) => `${inner}${part},`), `${indent}${close}`].join("\n");
}

function nameOf(name: string): string {
  // As a plain name, __proto__ would set the prototype.
  return /^[A-Za-z_]\w*$/.test(name) && name !== "__proto__" ? name : `[${asciiJson(name)}]`;
}

function asciiJson(value: unknown): string {
  return (JSON.stringify(value) ?? "undefined").replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
