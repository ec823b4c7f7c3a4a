/**
 * Free space below which writes of a workspace, an image or a database soon fail: `doctor`,
 * `/readyz`.
 */
export const LOW_DISK_BYTES = 2 * 1024 ** 3
