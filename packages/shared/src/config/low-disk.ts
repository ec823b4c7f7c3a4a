/** Below this a workspace, an image or a database soon fails to be written: `doctor`, `/readyz`. */
export const LOW_DISK_BYTES = 2 * 1024 ** 3
