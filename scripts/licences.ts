/** `npm run licences`: writes docs/licences.md, what is installed and under which licence. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What is read of package-lock.json, by the folders that packages are installed in. */
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

export interface Package {
  readonly name: string;
  readonly version: string;
  readonly licence: string;
  /** Whether who installs Weir has it too; not so what only develops and tests it. */
  readonly isRuntime: boolean;
}

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
    .map(([licence, names]) => `### ${licence}\n\n${wrapped([...names])}`);
  return `# Licences

Weir is under the MIT licence. This is what it uses, by package-lock.json; \`npm run licences\` writes this page, and a
test says when it is out of date.

## In what is deployed or installed

${rows.length} packages. Their licences ask for no more than that their notices are kept.

| package | version | licence |
|---|---|---|
${rows.join("\n")}

## In development and tests alone

None of these is in the Worker or in the package. Those for other platforms than one's own are not installed.

${sections.join("\n\n")}
`;
}

const WIDTH = 118;

/** A list in lines of no more than {@link WIDTH} characters. */
function wrapped(names: readonly string[]): string {
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
