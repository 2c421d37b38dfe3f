// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_70 --verify-diagnostics

// expected-error @below {{unknown chip 'sm_70'; supported are sm_80 sm_86 sm_89 sm_90a sm_100a sm_120a}}
func.func @f() {
  return
}
