import { spawn } from "node:child_process";
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

/** Installs a project's packages, with the output of this process. @returns whether the installation succeeded */
export async function installPackages(manager: PackageManager, folder: string): Promise<boolean> {
  // Ctrl-C ends the package manager. This process goes on, and prints how the user goes on.
  const ignore = () => {};
  process.on("SIGINT", ignore);
  try {
    // Without a shell, Windows does not find npm.cmd. The arguments are constants.
    const shell = process.platform === "win32";
    const child = spawn(manager, ["install"], { cwd: folder, stdio: "inherit", shell });
    const [code] = await once(child, "exit");
    return code === 0;
  } catch {
    // The package manager is not installed.
    return false;
  } finally {
    process.off("SIGINT", ignore);
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
