/**
 * Runs a function without the environment variable `NODE_ENV`. Some build servers set this variable to
 * `"production"`. Weir's schema then has no texts for faults, as in a deployed Worker. The schema reads the
 * variable while it is loaded and again when it finds a fault, so both must happen within the function.
 */
export async function withoutNodeEnv<Result>(run: () => Result | Promise<Result>): Promise<Result> {
  const { NODE_ENV } = process.env;
  delete process.env.NODE_ENV;
  try {
    return await run();
  } finally {
    if (NODE_ENV !== undefined) process.env.NODE_ENV = NODE_ENV;
  }
}
