import {
  applyEdits,
  type FormattingOptions,
  findNodeAtLocation,
  modify,
  parseTree,
} from "jsonc-parser";
import type { Addition } from "./wrangler-additions.ts";

/** Adds a value to a JSON document, and keeps its comments and formatting. */
export function withJsonAdditions(text: string, { kind, path, value }: Addition): string {
  if (kind === "set") return setJson(text, path, value);
  const tree = parseTree(text, undefined, { allowTrailingComma: true });
  const list = tree && findNodeAtLocation(tree, [...path]);
  if (list?.type !== "array") return setJson(text, path, [value]);
  // With an existing list, `modify` inserts one item and formats only this item.
  const at = [...path, list.children?.length ?? 0];
  return applyEdits(
    text,
    modify(text, at, value, { isArrayInsertion: true, formattingOptions: formattingOf(text) }),
  );
}

/** Sets a value of a JSON document, and keeps its comments and formatting. */
export function setJson(text: string, path: readonly string[], value: unknown): string {
  return applyEdits(
    text,
    modify(text, [...path], value, { formattingOptions: formattingOf(text) }),
  );
}

/** Returns a value as the lines that a user adds to a JSON document. */
export function withJsonValue({ kind, path, value }: Addition): string {
  const item = kind === "append" ? [value] : value;
  const nested = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), item);
  return JSON.stringify(nested, null, 2).split("\n").slice(1, -1).join("\n");
}

/** Reads the indentation and the line ends of a document. */
function formattingOf(text: string): FormattingOptions {
  const [, indent = "  "] = /^([ \t]+)\S/m.exec(text) ?? [];
  return {
    insertSpaces: !indent.startsWith("\t"),
    tabSize: indent.startsWith("\t") ? 1 : indent.length,
    eol: text.includes("\r\n") ? "\r\n" : "\n",
  };
}
