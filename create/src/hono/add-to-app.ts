import { readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { parse as parseToml } from "smol-toml";
import { Failure } from "../failure.ts";
import { fileFailure } from "../file-failure.ts";
import { templateConfig } from "../new-project.ts";
import { CURRENT, HONO, isAtLeast, NODE_20, toolchainFor } from "../versions.ts";
import type { Edit } from "./entry.ts";
import { type ClassNames, editEntry } from "./entry.ts";
import {
  type AppFile,
  type HonoApp,
  MARK,
  parseJson,
  parseSettings,
  readHonoApp,
  readText,
} from "./hono-app.ts";
import { setJson, withJsonAdditions, withJsonValue } from "./json-edit.ts";
import {
  type Addition,
  buildAdvice,
  exposureAdvice,
  missingSettings,
  withAdditions,
} from "./wrangler-additions.ts";

/**
 * Returns texts that may be the TOML document with the addition, the best one first. The caller parses each text and
 * takes the first correct one, because no maintained TOML editor for JavaScript keeps comments.
 */
function* withTomlAddition(text: string, addition: Addition): Generator<string> {
  const { kind, path, value } = addition;
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const name = path.map(keyOf).join(".");
  const head = kind === "append" ? `[[${name}]]` : `[${name}]`;
  const fields = Object.entries(value).map(([key, field]) => `${keyOf(key)} = ${tomlValue(field)}`);
  const separator = text === "" ? "" : text.endsWith("\n") ? eol : eol + eol;
  yield `${text}${separator}${[head, ...fields].join(eol)}${eol}`;
  // The list may be written as `name = [ … ]`. One of the `]` in the text closes this list, so each of them is tried.
  const item = `{ ${fields.join(", ")} }`;
  for (let at = text.indexOf("]"); at !== -1; at = text.indexOf("]", at + 1)) {
    const before = text.slice(0, at).trimEnd();
    const between = text.slice(before.length, at);
    const comma = /[[,]$/.test(before) ? "" : ",";
    const indent = between.includes("\n") ? `${eol}  ` : before.endsWith("[") ? "" : " ";
    yield `${before}${comma}${indent}${item}${between}${text.slice(at)}`;
  }
  // An owner may be an inline table, such as `staging = { name = "s" }`. One of the `}` in the text closes this table,
  // so each of them is tried.
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

/** Writes texts, booleans and lists of texts. TOML writes these values like JSON. */
function tomlValue(value: unknown): string {
  return Array.isArray(value) ? `[${value.map(tomlValue).join(", ")}]` : JSON.stringify(value);
}

/**
 * Adds Weir's settings to an app's wrangler configuration, and keeps comments and formatting. Each new text is parsed,
 * and is used only if it has exactly the old settings and the additions.
 *
 * @param classes the names under which the app exports Weir's classes
 * @throws {Failure} if the file cannot be read, or if the name of a binding is in use
 */
export function editWrangler(file: AppFile, hasBuild: boolean, classes: ClassNames): Edit {
  const settings = parseSettings(file);
  const isToml = file.path.endsWith(".toml");
  const check = hasBuild ? buildAdvice(settings) : undefined;
  const advice = check ? [`${file.path}: ${check}`] : [];
  const byHand: string[] = [];
  const changes: string[] = [];
  let { text } = file;
  let current = settings;
  for (const addition of missingSettings(settings, hasBuild, classes)) {
    const expected = withAdditions(current, [addition]);
    const candidates = isToml
      ? withTomlAddition(text, addition)
      : [withJsonAdditions(text, addition)];
    const parse = isToml ? parseToml : parseJson;
    const edited = firstWith(candidates, (candidate) =>
      isDeepStrictEqual(plain(parse(candidate)), plain(expected)),
    );
    if (edited === undefined) {
      const steps = addition.isNeeded ? byHand : advice;
      steps.push(`${file.path}: ${addition.change}:\n${linesOf(addition, isToml)}`);
      continue;
    }
    text = edited;
    current = expected;
    changes.push(addition.change);
  }
  const exposure = exposureAdvice(settings);
  // A second run leaves the choice to the user.
  if (exposure && changes.length > 0) advice.push(`${file.path}: ${exposure}`);
  return { text, changes, byHand, advice };
}

/** Returns the first candidate that passes a test. An error of the test counts as not passed. */
function firstWith(
  candidates: Iterable<string>,
  test: (candidate: string) => boolean,
): string | undefined {
  for (const candidate of candidates) {
    try {
      if (test(candidate)) return candidate;
    } catch {
      // The candidate cannot be parsed.
    }
  }
  return undefined;
}

/** Makes objects of both parsers comparable: smol-toml's objects have no prototype. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** Returns the lines that a user adds by hand. */
function linesOf(addition: Addition, isToml: boolean): string {
  if (!isToml) return withJsonValue(addition);
  const [lines = ""] = withTomlAddition("", addition);
  return lines.trim();
}

/** The oldest version of hono in {@link HONO}. */
const OLDEST_HONO = HONO.slice(1);

/** The first version of wrangler that refuses Node 20. */
const WRANGLER_WITHOUT_NODE_20 = "4.87.0";

/**
 * Adds the package edge-weir to an app's package.json, and changes the ranges of two packages if
 * they cannot work: hono, if Weir needs a newer version, and wrangler, if it refuses this Node. Each
 * new text is parsed, and is used only if it has exactly the added ranges.
 *
 * @param edgeWeir the text by which package.json names the package
 * @throws {Failure} if the app needs a version of hono that Weir does not support
 */
function editManifest(file: AppFile, edgeWeir: string, nodeVersion: string): Edit {
  const changes: string[] = [];
  const byHand: string[] = [];
  let { text } = file;
  const manifest = parseJson(text) as Record<string, Record<string, string> | undefined>;
  const expected = structuredClone(manifest);
  const set = (kind: string, name: string, range: string, reason: string) => {
    const before = manifest[kind]?.[name];
    const edited = setJson(text, [kind, name], range);
    expected[kind] = { ...expected[kind], [name]: range };
    if (!isDeepStrictEqual(parseJson(edited), expected)) {
      byHand.push(
        `${file.path}: set ${JSON.stringify(name)} in ${kind} to ${JSON.stringify(range)}`,
      );
      return;
    }
    text = edited;
    changes.push(`${name}: ${before === undefined ? range : `${before} → ${range}`}${reason}`);
  };
  const { dependencies = {}, devDependencies = {} } = manifest;
  if (!("edge-weir" in { ...dependencies, ...devDependencies })) {
    set("dependencies", "edge-weir", edgeWeir, "");
  }
  for (const [kind, ranges] of [
    ["dependencies", dependencies],
    ["devDependencies", devDependencies],
  ] as const) {
    if (ranges.hono !== undefined && isOldHono(ranges.hono)) {
      set(kind, "hono", HONO, `, because Weir needs hono ${OLDEST_HONO}`);
    }
    if (ranges.wrangler !== undefined && refusesNode(ranges.wrangler, nodeVersion)) {
      const { wrangler = "" } = NODE_20.devDependencies;
      set(
        kind,
        "wrangler",
        wrangler,
        `, because newer versions need Node 22, and this is Node ${nodeVersion}`,
      );
    }
  }
  return { text, changes, byHand, advice: [] };
}

/**
 * @param range such as `^4.6.0`. Tags and other notations are left alone
 * @throws {Failure} if the app insists on an old version
 */
function isOldHono(range: string): boolean {
  const [, sign, version] = /^([\^~]?)(\d+\.\d+\.\d+)$/.exec(range) ?? [];
  if (version === undefined || isAtLeast(version, OLDEST_HONO)) return false;
  if (sign === "^" && version.startsWith("4.")) return true;
  throw new Failure(
    `package.json asks for hono ${range}, but Weir needs hono ${OLDEST_HONO} or newer: run npm install hono@latest. Nothing was written.`,
  );
}

/** Whether the newest version in a range of wrangler refuses this Node. */
function refusesNode(range: string, nodeVersion: string): boolean {
  if (toolchainFor(nodeVersion) === CURRENT) return false;
  const [, sign, version] = /^([\^~]|>=)?(\d+\.\d+\.\d+)$/.exec(range) ?? [];
  if (version === undefined) return /^(latest|\*|\^?4(\.x)?)$/.test(range);
  return sign === "^" || sign === ">=" || isAtLeast(version, WRANGLER_WITHOUT_NODE_20);
}

/** The settings of tsconfig.json on which the extension of an import depends. */
interface Modules {
  readonly module?: string;
  readonly moduleResolution?: string;
}

/** The maximum number of files that extend each other, in case they form a circle. */
const MAX_FILES = 10;

/**
 * Returns the path by which the entry imports weir.config.ts. The extension depends on the app's
 * own imports and on tsconfig.json.
 */
async function configImport({ folder, entry }: HonoApp): Promise<string> {
  const path = relative(dirname(entry.path), "weir.config").replaceAll("\\", "/");
  const prefixed = path.startsWith(".") ? path : `./${path}`;
  const [, own] = /from\s*["']\.{1,2}\/[^"']*(\.[jt]s)x?["']/.exec(entry.text) ?? [];
  if (own !== undefined) return prefixed + own;
  if (!/\.[cm]?tsx?$/.test(entry.path)) return `${prefixed}.ts`;
  const { module = "", moduleResolution = module } = await readModules(folder, "tsconfig.json");
  return /^node(16|18|20|next)$/i.test(moduleResolution) ? `${prefixed}.js` : prefixed;
}

/** Reads a tsconfig.json and the files that it extends, if they are files of the app. */
async function readModules(folder: string, first: string): Promise<Modules> {
  const paths = [first];
  let found: Modules = {};
  for (let count = 0; count < MAX_FILES; count++) {
    const path = paths.shift();
    if (path === undefined) break;
    const file = (await readText(folder, path)) ?? (await readText(folder, `${path}.json`));
    const { compilerOptions = {}, bases } = parseConfig(file?.text);
    // The first file that has an option decides.
    found = { ...compilerOptions, ...found };
    // The last base overrides the earlier ones. A file's own bases are read before further bases of its owner.
    const own = bases.filter((each) => each.startsWith(".")).reverse();
    paths.unshift(...own.map((each) => join(dirname(path), each)));
  }
  return found;
}

function parseConfig(text: string | undefined): {
  compilerOptions?: Modules;
  bases: readonly string[];
} {
  try {
    const config = parseJson(text ?? "{}") as {
      compilerOptions?: Modules;
      extends?: string | string[];
    };
    const { compilerOptions = {}, extends: bases = [] } = config;
    return { compilerOptions, bases: [bases].flat() };
  } catch {
    // The compiler reports a faulty file.
    return { bases: [] };
  }
}

/** The result of adding Weir to an app. */
interface AppChanges {
  /** The changed files with their changes, and the steps that are left to the user. */
  readonly report: string;
  readonly hasChanged: boolean;
  /** Whether the user must add lines before Weir limits requests. */
  readonly needsHand: boolean;
  /** The URL of the app in development. */
  readonly devUrl: string;
}

/** The configuration that the app imports. */
const CONFIG = "weir.config.ts";

/**
 * Adds Weir to a Hono app: the package, the rules, the middleware, and the Durable Objects with the
 * counters and with the statistics. A second call changes nothing. If a file cannot be written, all files keep
 * their old texts.
 *
 * @throws {Failure} if the folder has no such app, or if its settings contradict Weir's
 */
export async function addToHonoApp(
  folder: string,
  options: { readonly edgeWeir: string; readonly nodeVersion: string },
): Promise<AppChanges> {
  const app = await readHonoApp(folder);
  const usesVite = app.manifest.text.includes('"@cloudflare/vite-plugin"');
  const entry = editEntry(app.entry, await configImport(app));
  const edits = new Map<string, Edit>([
    [app.manifest.path, editManifest(app.manifest, options.edgeWeir, options.nodeVersion)],
    [app.wrangler.path, editWrangler(app.wrangler, !usesVite, entry.classes)],
    [app.entry.path, entry],
  ]);
  const before = new Map<string, AppFile | undefined>(
    [app.manifest, app.wrangler, app.entry].map((file) => [file.path, file]),
  );
  const existing = await readFile(join(folder, CONFIG), "utf8").catch(() => undefined);
  if (existing === undefined) {
    const template = await templateConfig();
    const text = app.entry.text.includes("\r\n") ? template.replace(/\r?\n/g, "\r\n") : template;
    const changes = ["new: two rules to begin with"];
    edits.set(CONFIG, { text, changes, byHand: [], advice: [] });
    before.set(CONFIG, undefined);
  }
  const { compatibilityDate: newest } = NODE_20;
  const { compatibility_date: date } = parseSettings(app.wrangler);
  const isNode20 = toolchainFor(options.nodeVersion) === NODE_20;
  const tooNew = isNode20 && String(date ?? "") > newest;
  await replaceFiles(folder, edits, before);
  const all = [...edits.values()];
  const byHand = all.flatMap((edit) => edit.byHand);
  const advice = all.flatMap((edit) => edit.advice);
  if (tooNew) {
    advice.push(
      `${app.wrangler.path}: compatibility_date: set it to "${newest}", because the wrangler for Node 20 does not run with "${date}"`,
    );
  }
  if (usesVite) {
    advice.push(
      'package.json: Vite runs no command of wrangler, so run "npx weir check" before each deploy',
    );
  }
  return {
    report: reportOf(edits, byHand, advice),
    hasChanged: all.some(({ changes }) => changes.length > 0),
    needsHand: byHand.length > 0,
    devUrl: usesVite ? "http://localhost:5173" : "http://localhost:8787",
  };
}

/**
 * Writes the edited files. If one cannot be written, restores all of them.
 *
 * @throws {Failure} for an error of the file system, with the files that could not be restored
 */
async function replaceFiles(
  folder: string,
  edits: ReadonlyMap<string, Edit>,
  before: ReadonlyMap<string, AppFile | undefined>,
): Promise<void> {
  const written: string[] = [];
  try {
    for (const [path, { text, changes }] of edits) {
      if (changes.length === 0) continue;
      written.push(path);
      await writeFile(join(folder, path), withMark(text, before.get(path)));
    }
  } catch (error) {
    const lost: string[] = [];
    for (const path of written) {
      const file = before.get(path);
      const target = join(folder, path);
      const restored = file ? writeFile(target, withMark(file.text, file)) : rm(target);
      // A folder named weir.config.ts is not Weir's, so it stays.
      await restored.catch(() => file && lost.push(path));
    }
    const outcome =
      lost.length === 0
        ? "All files have their old contents again."
        : `The old contents of ${lost.join(" and ")} could not be restored.`;
    throw fileFailure(error, outcome);
  }
}

function withMark(text: string, file: AppFile | undefined): string {
  return file?.hasMark ? MARK + text : text;
}

function reportOf(
  edits: ReadonlyMap<string, Edit>,
  byHand: readonly string[],
  advice: readonly string[],
): string {
  const lines = [...edits].flatMap(([path, { changes }]) =>
    changes.length === 0 ? [] : [path, ...changes.map((change) => `  ${change}`)],
  );
  const nothing =
    byHand.length === 0 ? "The files have everything that Weir needs already." : "Changed no file.";
  return [
    ...(lines.length === 0 ? [nothing] : lines),
    ...section("Left to you, before Weir limits requests:", byHand),
    ...section("Also useful:", advice),
  ].join("\n");
}

function section(title: string, steps: readonly string[]): string[] {
  if (steps.length === 0) return [];
  return ["", title, ...steps.map((step) => `  ${step.replaceAll("\n", "\n    ")}`)];
}
