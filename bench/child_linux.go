package main

import (
	"os/exec"
	"syscall"
)

// dieTogether lets the kernel kill the server when this program dies, however it does.
func dieTogether(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// settle waits until what was written is on the disk, so that it doesn't slow down what is measured next.
func settle() { syscall.Sync() }
