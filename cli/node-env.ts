/**
 * Runs a function without the environment variable `NODE_ENV`. If it is `"production"`, as on some build
 * servers, Weir's schema has no texts for its faults, as in a deployed Worker. The schema gets some of them
 * when it is loaded, and the others when it finds a fault.
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
