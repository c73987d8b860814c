"""What gets an application going again that no error would: ``neighbours`` notices that another process has died."""
