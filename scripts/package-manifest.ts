/**
 * The fields of the repository's package.json that the npm package's own package.json changes or
 * leaves out.
 */
export interface RepositoryManifest {
  /** The files that other projects import, in TypeScript, and package.json itself. */
  readonly exports: Readonly<Record<string, string>> & { readonly ".": string };
  readonly private?: unknown;
  readonly scripts?: unknown;
  readonly devDependencies?: unknown;
  /** Node itself, which only development needs. */
  readonly optionalDependencies?: unknown;
  readonly allowScripts?: unknown;
  /** Texts for the Deploy to Cloudflare button, which deploys the repository. */
  readonly cloudflare?: unknown;
}

/**
 * Returns the package.json of the package. The repository's package.json points at TypeScript, so that development
 * needs no build. But Node loads no TypeScript from node_modules, so the package needs JavaScript.
 */
export function packageManifest(repository: RepositoryManifest): object {
  const {
    private: _private,
    scripts: _scripts,
    devDependencies: _devDependencies,
    optionalDependencies: _optionalDependencies,
    allowScripts: _allowScripts,
    cloudflare: _cloudflare,
    ...kept
  } = repository;
  const exports = Object.fromEntries(
    Object.entries(kept.exports).map(([name, file]) => [name, builtExport(file)]),
  );
  // Compilers with the setting `"moduleResolution": "node10"` do not read exports.
  return { ...kept, types: withExtension(kept.exports["."], ".d.ts"), exports };
}

/** @param file such as `./src/index.ts` */
function builtExport(file: string): object | string {
  if (!file.endsWith(".ts")) return file;
  return { types: withExtension(file, ".d.ts"), default: withExtension(file, ".js") };
}

/** @param source such as `./src/index.ts` */
function withExtension(source: string, extension: string): string {
  return source.replace(/\.ts$/, extension);
}
