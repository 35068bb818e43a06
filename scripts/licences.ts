/** `npm run licences`: writes docs/licences.md, the list of installed packages and their licences. */
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
  readonly peerDependencies?: Readonly<Record<string, string>>;
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
  const provided = Object.keys(packages[""]?.peerDependencies ?? {});
  return Object.entries(packages)
    .filter(([path]) => path !== "")
    .map(([path, { version = "", license = "none", dev, devOptional, optional }]) => {
      const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
      const isRuntime = provided.includes(name) || !(dev || devOptional || optional);
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
  const byLicence = new Map<string, Set<string>>();
  for (const { name, licence, isRuntime } of packages) {
    if (isRuntime) continue;
    byLicence.set(licence, (byLicence.get(licence) ?? new Set()).add(`\`${name}\``));
  }
  const sections = [...byLicence]
    .sort(([a], [b]) => compare(a, b))
    .map(([licence, names]) => `### ${licence}\n\n${wrapNames([...names])}`);
  return `# Licences

Weir has the MIT licence. This page lists the packages that Weir uses and their licences, according to
package-lock.json. \`npm run licences\` writes the page, and a test fails if it is out of date.

## Packages that are deployed or installed

Weir is deployed or installed with these ${rows.length} packages. Their licences require only that you keep their notices.

| package | version | licence |
|---|---|---|
${rows.join("\n")}

## Packages for development and tests

The Worker and the npm package contain none of these packages. npm installs only the packages that support your
platform.

${sections.join("\n\n")}
`;
}

const WIDTH = 118;

/** Joins names with commas, in lines of at most {@link WIDTH} characters. */
function wrapNames(names: readonly string[]): string {
  let width = 0;
  const parts = names.map((name, index) => {
    const part = index < names.length - 1 ? `${name},` : name;
    const breaks = width > 0 && width + 1 + part.length > WIDTH;
    const gap = breaks ? "\n" : index === 0 ? "" : " ";
    width = breaks ? part.length : width + gap.length + part.length;
    return gap + part;
  });
  return parts.join("");
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  const lock: Lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  writeFileSync(join(root, "docs/licences.md"), licencesPage(packagesOf(lock)));
}
