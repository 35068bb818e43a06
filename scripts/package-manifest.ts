/**
 * The fields of the repository's package.json that the npm package's own package.json changes or
 * leaves out.
 */
export interface RepositoryManifest {
  /** The files that other projects import, in TypeScript. */
  readonly exports: Readonly<Record<string, string>>;
  readonly private?: unknown;
  readonly scripts?: unknown;
  readonly devDependencies?: unknown;
  /** Node itself, which only development needs. */
  readonly optionalDependencies?: unknown;
  readonly allowScripts?: unknown;
}

/**
 * Returns the package.json of the package. The repository's package.json points at TypeScript, so
 * that development needs no build. Node does not remove types from files under node_modules, so the
 * package.json of the package points at JavaScript.
 */
export function packageManifest(repository: RepositoryManifest): object {
  const {
    private: _private,
    scripts: _scripts,
    devDependencies: _devDependencies,
    optionalDependencies: _optionalDependencies,
    allowScripts: _allowScripts,
    ...kept
  } = repository;
  return {
    ...kept,
    exports: mapValues(kept.exports, (source) => ({
      types: withExtension(source, ".d.ts"),
      default: withExtension(source, ".js"),
    })),
  };
}

function mapValues<From, To>(
  record: Readonly<Record<string, From>>,
  convert: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, convert(value)]));
}

/** @param source such as `./src/index.ts` */
function withExtension(source: string, extension: string): string {
  return source.replace(/\.ts$/, extension);
}
