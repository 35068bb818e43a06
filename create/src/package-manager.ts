import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";

export const PACKAGE_MANAGERS = ["npm", "pnpm", "yarn", "bun"] as const;
export type PackageManager = (typeof PACKAGE_MANAGERS)[number];

/**
 * Returns the package manager that runs this process.
 *
 * @param userAgent the variable npm_config_user_agent, which all package managers set; such as
 * `pnpm/10.2.0 npm/? node/v24.1.0 linux x64`
 * @returns npm if the text names none
 */
export function runningPackageManager(userAgent = ""): PackageManager {
  const name = userAgent.split("/")[0];
  return PACKAGE_MANAGERS.find((each) => each === name) ?? "npm";
}

/** The result of an installation. */
export type Installation = "installed" | "failed" | "interrupted";

/** Installs a project's packages. The output goes to the output of this process. */
export async function installPackages(
  manager: PackageManager,
  folder: string,
): Promise<Installation> {
  // Without a shell, Windows does not find npm.cmd. The arguments are constants.
  const options = { cwd: folder, stdio: "inherit", shell: process.platform === "win32" } as const;
  let child: ChildProcess | undefined;
  let isInterrupted = false;
  // After Ctrl-C, this process waits for the package manager, and then prints how to go on.
  const interrupt = () => {
    isInterrupted = true;
    child?.kill("SIGINT");
  };
  process.on("SIGINT", interrupt);
  try {
    child = spawn(manager, ["install"], options);
    const [code] = await once(child, "exit");
    if (isInterrupted) return "interrupted";
    return code === 0 ? "installed" : "failed";
  } catch {
    // The package manager is not installed.
    return "failed";
  } finally {
    process.off("SIGINT", interrupt);
  }
}

/** Whether a project can load the package edge-weir, also from the folder of its workspace. */
export function hasPackage(folder: string): boolean {
  try {
    createRequire(join(folder, "package.json")).resolve("edge-weir/package.json");
    return true;
  } catch {
    return false;
  }
}
