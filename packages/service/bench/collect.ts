/** Loaded into the processes whose memory is measured: on SIGUSR2 they collect what is garbage. Needs `--expose-gc`. */
process.on('SIGUSR2', () => globalThis.gc?.())
