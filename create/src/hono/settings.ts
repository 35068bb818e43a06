import { applyEdits, modify } from "jsonc-parser";
import { Failure } from "../failure.ts";
import { HONO, isAtLeast } from "../versions.ts";
import { type AppFile, type Edit, parseSettings } from "./app-files.ts";
import { CLASSES } from "./entry.ts";

type Settings = Readonly<Record<string, unknown>>;

/** A value that a file lacks: an item of the list at `path` to append, or the value at `path`. */
interface Addition {
  readonly kind: "append" | "set";
  readonly path: readonly string[];
  readonly value: Settings | string;
  readonly change: string;
}

/**
 * Adds Weir's settings to an app's wrangler configuration: the Durable Objects in each environment, because
 * environments do not inherit bindings; the declaration of their classes; and logs.
 *
 * @throws {Failure} if the name of a binding is in use
 */
export function editWrangler(file: AppFile): Edit {
  const edit = withAdditions(file, (settings) => {
    const environments = Object.keys(recordAt(settings, "env")).map((name) => ["env", name]);
    const additions = [[], ...environments].flatMap((scope) => missingObjects(settings, scope));
    if ("observability" in settings) return additions;
    const value = { enabled: true, head_sampling_rate: 1 };
    const change = "observability: Cloudflare keeps Weir's log lines for a few days";
    return [...additions, { kind: "set", path: ["observability"], value, change }];
  });
  const advice = 'run "npx weir check" before each deploy, for example in the command of build';
  return { ...edit, advice: edit.changes.length === 0 ? [] : [`${file.path}: ${advice}`] };
}

function missingObjects(settings: Settings, scope: readonly string[]): Addition[] {
  const owner = scope.reduce(recordAt, settings);
  const where = scope.length > 0 ? `${scope.join(".")}: ` : "";
  const bindings = listAt(recordAt(owner, "durable_objects"), "bindings");
  const additions: Addition[] = [];
  for (const [name, class_name] of Object.entries(CLASSES)) {
    const own = bindings.find((each) => each.name === name || each.class_name === class_name);
    if (own && (own.name !== name || own.class_name !== class_name)) {
      throw new Failure(
        `${where}the binding ${own.name} exists already, for the class ${own.class_name}. Weir needs the binding ${name} for its class ${class_name}: rename your binding or class. Nothing was written.`,
      );
    }
    const change = `${where}the binding ${name} of the Durable Objects of Weir's class ${class_name}`;
    const path = [...scope, "durable_objects", "bindings"];
    if (!own) additions.push({ kind: "append", path, value: { name, class_name }, change });
  }
  return [...additions, ...missingDeclarations(owner, scope, where)];
}

/**
 * The declarations of Weir's classes: in `exports` if the app declares its own classes there, because wrangler refuses
 * both notations in one Worker; else in a migration, which every version of wrangler reads. Environments inherit them,
 * unless they have their own.
 */
function missingDeclarations(owner: Settings, scope: readonly string[], where: string): Addition[] {
  const exported = recordAt(owner, "exports");
  if (Object.keys(exported).some((name) => recordAt(exported, name).type === "durable-object")) {
    const missing = Object.values(CLASSES).filter((name) => !(name in exported));
    return missing.map((name) => ({
      kind: "set",
      path: [...scope, "exports", name],
      value: { type: "durable-object", storage: "sqlite" },
      change: `${where}the class ${name} in exports`,
    }));
  }
  if (scope.length > 0 && !("migrations" in owner)) return [];
  const migrations = listAt(owner, "migrations");
  const created = migrations.flatMap((each) => [each.new_sqlite_classes, each.new_classes].flat());
  const missing = Object.values(CLASSES).filter((name) => !created.includes(name));
  if (missing.length === 0) return [];
  const change = `${where}the migration that creates ${missing.join(" and ")}`;
  const value = { tag: `weir-v${migrations.length + 1}`, new_sqlite_classes: missing };
  return [{ kind: "append", path: [...scope, "migrations"], value, change }];
}

/** Adds the package edge-weir to package.json. @throws {Failure} for a hono that Weir does not support */
export function editManifest(file: AppFile, edgeWeir: string): Edit {
  return withAdditions(file, (manifest) => {
    const packages: Settings = {
      ...recordAt(manifest, "devDependencies"),
      ...recordAt(manifest, "dependencies"),
    };
    // Tags and other notations are left alone.
    const [range = "", version] = /^[\^~]?(\d+\.\d+\.\d+)$/.exec(String(packages.hono)) ?? [];
    if (version !== undefined && !isAtLeast(version, HONO.slice(1))) {
      throw new Failure(
        `package.json asks for hono ${range}, but Weir needs hono ${HONO.slice(1)} or newer: run npm install hono@latest. Nothing was written.`,
      );
    }
    const path = ["dependencies", "edge-weir"];
    const change = `edge-weir: ${edgeWeir}`;
    return "edge-weir" in packages ? [] : [{ kind: "set", path, value: edgeWeir, change }];
  });
}

/**
 * Adds values to a file, and keeps its comments and formatting. Each new text is parsed, and is used only if it has the
 * value. Otherwise, the value is left to the user.
 */
function withAdditions(file: AppFile, missingIn: (settings: Settings) => Addition[]): Edit {
  const { path } = file;
  const isToml = path.endsWith(".toml");
  const changes: string[] = [];
  const byHand: string[] = [];
  let { text } = file;
  for (const addition of missingIn(parseSettings(file))) {
    const { kind, path: place, value, change } = addition;
    try {
      const edited = isToml ? inToml(text, addition) : inJson(text, addition);
      const missing = missingIn(parseSettings({ path, text: edited }));
      if (missing.some((each) => each.change === change)) throw new Failure("");
      text = edited;
      changes.push(change);
    } catch {
      // The file has two such keys, or an inline table in TOML, to which no table can be added.
      const shown = isToml ? `{ ${tomlFields(value).join(", ")} }` : JSON.stringify(value);
      const step = `${kind === "set" ? "set" : "add to the list"} ${place.join(".")}: ${shown}`;
      byHand.push(`${path}: ${change}:\n${step}`);
    }
  }
  return { text, changes, byHand, advice: [] };
}

function inJson(text: string, { kind, path, value }: Addition): string {
  const [, indent = "  "] = /^([ \t]+)\S/m.exec(text) ?? [];
  const insertSpaces = !indent.startsWith("\t");
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const formattingOptions = { insertSpaces, tabSize: insertSpaces ? indent.length : 1, eol };
  const owner = path.slice(0, -1).reduce(recordAt, parseSettings({ path: "", text }));
  const at = kind === "set" ? [...path] : [...path, listAt(owner, path.at(-1) ?? "").length];
  const edits = modify(text, at, value, { formattingOptions, isArrayInsertion: kind === "append" });
  return applyEdits(text, edits);
}

/** Appends a table. No maintained TOML editor for JavaScript keeps comments. */
function inToml(text: string, { kind, path, value }: Addition): string {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const name = path.map((each) => (/^[\w-]+$/.test(each) ? each : JSON.stringify(each))).join(".");
  const head = kind === "append" ? `[[${name}]]` : `[${name}]`;
  return `${text}${text.endsWith("\n") ? eol : eol + eol}${[head, ...tomlFields(value)].join(eol)}${eol}`;
}

/** TOML writes texts, booleans and lists of texts like JSON. */
function tomlFields(value: Addition["value"]): string[] {
  return Object.entries(value).map(([key, each]) => `${key} = ${JSON.stringify(each)}`);
}

function recordAt(owner: Settings, name: string): Settings {
  const value = owner[name];
  return typeof value === "object" && value !== null ? (value as Settings) : {};
}

function listAt(owner: Settings, name: string): Settings[] {
  const value = owner[name];
  return Array.isArray(value) ? value : [];
}
