import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { typescriptLanguage } from "@codemirror/lang-javascript";
import { pathOf } from "../../src/config/faults.ts";
import { ruleFields } from "../../src/config/rule.ts";
import { configFields } from "../../src/config/schema.ts";

// Reads the text of a weir.config.ts, or of its object alone, without running it.

type Node = ReturnType<typeof parse>["topNode"];
type Path = readonly (string | number)[];

/** A fault, and its place in the text. */
export interface TextFault {
  readonly from: number;
  readonly to: number;
  readonly path: string;
  readonly message: string;
}

interface RulesText {
  readonly value: unknown;
  /** The place of each value by its path, such as `rules[0].limit`. */
  readonly places: Map<string, Node>;
  /** The reasons why the value is incomplete. */
  readonly faults: TextFault[];
}

/** Returns the first object in a text. */
export function readRules(text: string): RulesText {
  const places: RulesText["places"] = new Map();
  const faults: TextFault[] = [];
  const refuse = ({ from, to }: Node, message: string) => {
    faults.push({ from, to, path: "", message });
  };
  const tree = parse(text);
  let root: Node | undefined;
  tree.iterate({
    enter: ({ type, node }) => {
      if (type.isError) refuse(node, "The syntax is wrong here.");
      if (type.name === "ObjectExpression") root ??= node;
    },
  });
  if (!root) refuse(tree.topNode, "Write an object: { rules: [] }");
  const value = root && faults.length === 0 ? valueAt(root, []) : undefined;
  return { value, places, faults };

  function valueAt(node: Node, path: Path): unknown {
    places.set(pathOf(path), node);
    const source = text.slice(node.from, node.to);
    switch (node.name) {
      case "ObjectExpression":
        return Object.fromEntries(
          node.getChildren("Property").flatMap((property) => {
            const { firstChild: key, lastChild: value } = property;
            if (!key || !value || key.from === value.from) {
              refuse(property, "A field needs a colon and a value.");
              return [];
            }
            const source = text.slice(key.from, key.to);
            const name = key.name === "String" ? textAt(key, source) : source;
            return [[name, valueAt(value, [...path, name])]];
          }),
        );
      case "ArrayExpression":
        return elementsOf(node).map((each, index) => valueAt(each, [...path, index]));
      case "String":
        return textAt(node, source);
      case "Number":
      case "UnaryExpression":
        return Number(source.replaceAll("_", ""));
      case "BooleanLiteral":
        return source === "true";
      default:
        refuse(node, "Only objects, lists, texts, numbers, true and false can be tried here.");
        return undefined;
    }
  }

  function textAt(node: Node, source: string): string {
    const inner = source.slice(1, -1).replaceAll("\\'", "'").replaceAll('"', '\\"');
    try {
      return JSON.parse(source.startsWith('"') ? source : `"${inner}"`);
    } catch {
      refuse(node, "A text can have only the escapes of JSON here.");
      return "";
    }
  }
}

const scripts = typescriptLanguage.parser;
/** At the start of a script, the braces of an object would be a block. */
const expressions = scripts.configure({ top: "SingleExpression" });

function parse(text: string) {
  return (/^(\s|\/\/.*\n)*\{/.test(text) ? expressions : scripts).parse(text);
}

function elementsOf(list: Node): Node[] {
  const elements: Node[] = [];
  for (let node = list.firstChild; node; node = node.nextSibling) {
    if (!/^[[\],]$|Comment$/.test(node.name)) elements.push(node);
  }
  return elements;
}

/** Adds the place of a fault: its value, or the object in which its field is missing. */
export function placed(
  { places }: RulesText,
  fault: Pick<TextFault, "path" | "message">,
): TextFault {
  let { path } = fault;
  while (path !== "" && !places.has(path)) path = path.replace(/(\.?[^.[\]]+|\[[^[\]]*\])$/, "");
  const { from, to } = places.get(path) ?? { from: 0, to: 0 };
  return { ...fault, from, to };
}

/** The parts of a schema of Valibot that lead to the schemas of its fields. */
interface Schema {
  readonly kind?: string;
  readonly pipe?: readonly Schema[];
  readonly wrapped?: Schema;
  readonly item?: Schema;
  readonly value?: Schema;
  readonly entries?: Readonly<Record<string, Schema>>;
  readonly message?: unknown;
  readonly default?: unknown;
}

/** Returns a schema and the schemas of which it consists. */
function layersOf(schema: Schema): Schema[] {
  const inner = [...(schema.pipe ?? []), ...(schema.wrapped ? [schema.wrapped] : [])];
  return [schema, ...inner.filter(({ kind }) => kind === "schema").flatMap(layersOf)];
}

/** Returns the schemas of the value at a path. */
function schemasAt(path: Path): Schema[] {
  // The schema of the rules is a function, which chooses between a list and lists by file.
  const rule = path[0] === "rules" ? path.findIndex((key) => typeof key === "number") : -1;
  const fields: object = rule === -1 ? configFields : ruleFields;
  const start: Schema = { entries: { ...fields } };
  return path
    .slice(rule + 1)
    .reduce<Schema[]>(
      (schemas, key) =>
        schemas
          .flatMap(({ item, value, entries }) => (entries ? entries[key] : (item ?? value)) ?? [])
          .flatMap(layersOf),
      [start],
    );
}

/** Returns the message of a schema, which lists the allowed values. */
function allowedIn(schemas: readonly Schema[]): string {
  return String(schemas.find(({ message }) => typeof message === "string")?.message ?? "");
}

/** Completes the names of fields, and the words that a field allows, from the tables of Weir's configuration. */
export function completeRules({
  state,
  pos,
  explicit,
}: CompletionContext): CompletionResult | null {
  const text = state.doc.toString();
  const word = /[\w"-]*$/.exec(text.slice(0, pos))?.[0] ?? "";
  if (word === "" && !explicit) return null;
  const from = pos - word.length;
  const { path, isValue } = pathTo(
    parse(text).resolveInner(from, word === "" ? -1 : 1),
    from,
    text,
  );
  // The editor may have closed the quotes already.
  const to = word.startsWith('"') && text[pos] === '"' ? pos + 1 : pos;
  return { from, to, options: isValue ? wordsAt(path) : fieldsAt(path) };
}

/** Returns the path of the innermost value that contains a position, and whether that value is no object. */
function pathTo(innermost: Node, at: number, text: string) {
  const path: (string | number)[] = [];
  let isValue: boolean | undefined;
  for (let node: Node | null = innermost; node; node = node.parent) {
    // An object whose braces are not closed may be a pattern for the parser.
    if (/^Object/.test(node.name)) isValue ??= false;
    if (/Property$/.test(node.name) && node.firstChild) {
      const { from, to } = node.firstChild;
      if (/^\s*:/.test(text.slice(to, at))) {
        isValue ??= true;
        path.unshift(text.slice(from, to).replaceAll('"', ""));
      }
    }
    if (node.parent && /^Array/.test(node.parent.name)) path.unshift(0);
  }
  return { path, isValue };
}

function fieldsAt(path: Path): Completion[] {
  const entries = schemasAt(path).flatMap((schema) => Object.entries(schema.entries ?? {}));
  return entries.map(([label, schema]) => ({
    label,
    type: "property",
    apply: `${label}: `,
    detail: schema.default === undefined ? "" : `default ${JSON.stringify(schema.default)}`,
    info: allowedIn(layersOf(schema)) || label,
  }));
}

function wordsAt(path: Path): Completion[] {
  const words = allowedIn(schemasAt(path)).matchAll(/"[^"\s]+"|\b(?:true|false)\b/g);
  return [...words].map(([label]) => ({ label, type: "constant" }));
}
