// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_70 --verify-diagnostics

// expected-error @below {{unknown chip 'sm_70'; supported are sm_80 }}
func.func @f() {
  return
}
