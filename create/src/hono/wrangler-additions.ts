import { Failure } from "../failure.ts";
import type { ClassNames } from "./entry.ts";

type Settings = Readonly<Record<string, unknown>>;

/** A value that wrangler's configuration lacks. */
export interface Addition {
  /** `append`: the value is an item of the list at `path`. `set`: it is the value at `path`. */
  readonly kind: "append" | "set";
  readonly path: readonly string[];
  readonly value: Settings;
  /** The description of the change, for the report. */
  readonly change: string;
  /** Whether Weir needs the value to limit requests. */
  readonly isNeeded: boolean;
}

/** The bindings of Weir's Durable Objects, and whether Weir needs them to limit requests. */
const BINDINGS = [
  {
    key: "counter",
    binding: "COUNTERS",
    content: "of the Durable Objects that hold the counters",
    isNeeded: true,
  },
  {
    key: "control",
    binding: "WEIR_CONTROL",
    content: "of the Durable Objects with the statistics and the live overrides",
    isNeeded: false,
  },
] as const;

/** The command that stops a build if weir.config.ts is faulty. */
const CHECK = "npx weir check";

/**
 * Returns the values that an app's configuration lacks for Weir: the Durable Objects in each
 * environment, because environments do not inherit bindings; their migrations; the check before each
 * build; and logs.
 *
 * @param settings the parsed configuration
 * @param hasBuild whether wrangler runs the command of `build`; Vite's plugin does not
 * @param classes the names under which the app exports Weir's classes
 * @throws {Failure} if the name of a binding is in use
 */
export function missingSettings(
  settings: Settings,
  hasBuild: boolean,
  classes: ClassNames,
): Addition[] {
  const environments = Object.keys(recordAt(settings, "env"));
  const scopes = [[], ...environments.map((name) => ["env", name])];
  const additions = scopes.flatMap((scope) => missingObjects(settings, scope, classes));
  const sources = sourceFolder(settings);
  if (hasBuild && sources !== undefined && !("build" in settings)) {
    additions.push({
      kind: "set",
      path: ["build"],
      value: {
        command: CHECK,
        // wrangler stops watching a file that an editor removes and creates again, unless the list
        // has a file of the same name in a folder that does not exist.
        watch_dir: [sources, "weir.config.ts", "no-such-folder/weir.config.ts"],
      },
      change: `build: ${CHECK} runs before each build, and wrangler dev watches only ${sources} and weir.config.ts`,
      isNeeded: false,
    });
  }
  if (!("observability" in settings)) {
    additions.push({
      kind: "set",
      path: ["observability"],
      value: { enabled: true, head_sampling_rate: 1 },
      change: "observability: Cloudflare keeps Weir's log lines for a few days",
      isNeeded: false,
    });
  }
  return additions;
}

/**
 * Returns the top folder of the app's sources; undefined if the entry is not in a folder. With a
 * build command, wrangler watches only the paths in `watch_dir`, and it cannot watch the app's whole
 * folder without node_modules.
 */
function sourceFolder({ main }: Settings): string | undefined {
  const parts = String(main).replace(/^\.\//, "").split("/");
  return parts.length > 1 && parts[0] !== ".." ? parts[0] : undefined;
}

/** Returns the advice if the check is not in the build and cannot be added; otherwise undefined. */
export function buildAdvice(settings: Settings): string | undefined {
  const { command } = recordAt(settings, "build");
  if (String(command ?? "").includes("weir check")) return undefined;
  if (command !== undefined) return `build.command: put "${CHECK} && " before your own command`;
  if ("build" in settings) return `build: add the command "${CHECK}"`;
  return sourceFolder(settings) === undefined
    ? `run ${CHECK} before each deploy, because wrangler could not watch the app's folder if the check were a build command`
    : undefined;
}

/** Returns the advice if the app also answers on workers.dev, which causes a warning; otherwise undefined. */
export function exposureAdvice(settings: Settings): string | undefined {
  const hasRoute = "route" in settings || listAt(settings, "routes").length > 0;
  if (!(settings.workers_dev ?? !hasRoute)) return undefined;
  return `workers_dev: set it to false once the app has a route. On workers.dev, the zone's firewall does not apply, and ${CHECK} warns of it (workers-dev)`;
}

function missingObjects(
  settings: Settings,
  scope: readonly string[],
  classes: ClassNames,
): Addition[] {
  const owner = scope.reduce(recordAt, settings);
  const where = scope.length > 0 ? `${scope.join(".")}: ` : "";
  const bindings = listAt(recordAt(owner, "durable_objects"), "bindings");
  const additions = BINDINGS.flatMap(({ key, binding, content, isNeeded }): Addition[] => {
    const className = classes[key];
    if (className === undefined) return [];
    const existing = bindings.find(({ name }) => name === binding);
    if (existing && existing.class_name !== className) {
      throw new Failure(
        `${where}the binding ${binding} exists already, for the class ${existing.class_name}. Weir needs this name for its class ${className}: rename your binding. Nothing was written.`,
      );
    }
    if (existing) return [];
    return [
      {
        kind: "append",
        path: [...scope, "durable_objects", "bindings"],
        value: { name: binding, class_name: className },
        change: `${where}the binding ${binding} ${content}`,
        isNeeded,
      },
    ];
  });
  // Environments inherit the migrations, unless they have their own.
  const isInherited = scope.length > 0 && !("migrations" in owner);
  return isInherited ? additions : [...additions, ...missingMigration(owner, scope, classes)];
}

function missingMigration(
  owner: Settings,
  scope: readonly string[],
  { counter, control }: ClassNames,
): Addition[] {
  const migrations = listAt(owner, "migrations");
  const created = migrations.flatMap((each) => [each.new_sqlite_classes, each.new_classes].flat());
  const missing = [counter, ...(control === undefined ? [] : [control])].filter(
    (className) => !created.includes(className),
  );
  if (missing.length === 0) return [];
  let version = 1;
  while (migrations.some(({ tag }) => tag === `weir-v${version}`)) version += 1;
  const where = scope.length > 0 ? `${scope.join(".")}: ` : "";
  return [
    {
      kind: "append",
      path: [...scope, "migrations"],
      value: { tag: `weir-v${version}`, new_sqlite_classes: missing },
      change: `${where}the migration that creates ${missing.join(" and ")}`,
      isNeeded: true,
    },
  ];
}

/** Returns a copy of the configuration with the additions. */
export function withAdditions(settings: Settings, additions: readonly Addition[]): Settings {
  const copy = structuredClone(settings) as Record<string, unknown>;
  for (const { kind, path, value } of additions) {
    let owner = copy;
    for (const name of path.slice(0, -1)) {
      owner[name] ??= {};
      owner = owner[name] as Record<string, unknown>;
    }
    const last = path.at(-1) as string;
    owner[last] = kind === "set" ? value : [...listAt(owner, last), value];
  }
  return copy;
}

function recordAt(owner: Settings, name: string): Settings {
  const value = owner[name];
  return typeof value === "object" && value !== null ? (value as Settings) : {};
}

function listAt(owner: Settings, name: string): Settings[] {
  const value = owner[name];
  return Array.isArray(value) ? value : [];
}
