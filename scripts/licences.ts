/** `npm run licences`: writes docs/licences.md, the list of the packages at run time and their licences. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The part of package-lock.json that this script reads. The keys are the folders of the packages. */
export interface Lock {
  readonly packages: Readonly<Record<string, Locked>>;
}

interface Locked {
  readonly version?: string;
  readonly license?: string;
  readonly dev?: true;
  readonly devOptional?: true;
  readonly optional?: true;
}

/** A locked package and its licence. */
export interface Package {
  readonly name: string;
  readonly version: string;
  readonly licence: string;
  /** Whether Weir needs the package; false if only development and tests need it. */
  readonly isRuntime: boolean;
}

/** Returns the locked packages, sorted by name and version. */
export function packagesOf({ packages }: Lock): Package[] {
  return Object.entries(packages)
    .filter(([path]) => path !== "")
    .map(([path, { version = "", license = "none", dev, devOptional, optional }]) => {
      const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
      const isRuntime = !(dev || devOptional || optional);
      return { name, version, licence: license, isRuntime };
    })
    .sort((a, b) => compare(a.name, b.name) || compare(a.version, b.version));
}

/** Returns the content of docs/licences.md. */
export function licencesPage(packages: readonly Package[]): string {
  const runtime = packages.filter(({ isRuntime }) => isRuntime);
  const rows = runtime.map(
    ({ name, version, licence }) => `| \`${name}\` | ${version} | ${licence} |`,
  );
  return `# Licences

Weir has the MIT licence. The package \`edge-weir\` brings these packages, whose licences require only that you keep
their notices. \`npm run licences\` writes this page from package-lock.json, which also names the packages for development
and tests.

| package | version | licence |
|---|---|---|
${rows.join("\n")}
`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  const lock: Lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  writeFileSync(join(root, "docs/licences.md"), licencesPage(packagesOf(lock)));
}
